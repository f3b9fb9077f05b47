"""Where did each step's time go? Profiler traces read, and their steps taken apart.

trace.py says what a trace holds, explanation.py what is said of it; reading/ makes the first from
files, attribution/ the second from the first, by pure functions.
"""
