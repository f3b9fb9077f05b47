"""What do the profiler's files say? Kineto's JSON, plain or gzip, into the types of trace.py."""
