"""What owns nodes of a launch: starts ranks, reads counters, passes on what is said, ends them.

The same program on emulated nodes, over ssh, in a pod, a Slurm task. Standard library only, for
Python 3.10 and newer: it goes into a user's image as it is, in one zip file (bundle.py).
"""
