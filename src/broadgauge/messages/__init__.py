"""What do tool, leader, agents and ranks say to each other?

The bottom of everything, and of the zip file that goes into a user's image: Python's standard
library only, 3.10 and newer.

    vocabulary   the closed sets of words that all sides use
    frames       lines that carry JSON through pipes, files and logs that others write to
    codec        frozen dataclasses to JSON and back
    tasks        what a rank is told to measure, with nothing left to choose
    rank         what a rank and its agent say to each other
    agent        what an agent and its leader say to each other
    counters     what is counted on a node, and the facts of a link
    limits       how large a cluster may be
"""
