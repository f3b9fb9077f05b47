"""From an experiment to a finished run, as functions: nothing here prints or reads a flag."""
