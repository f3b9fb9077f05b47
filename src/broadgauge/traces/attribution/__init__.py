"""Where did the time of each step go? Pure functions from traces to an explanation."""
