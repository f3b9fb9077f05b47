"""Where do cases run in pods of a cluster? What is asked of its API server, and what is heard."""
