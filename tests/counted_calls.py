"""How much work is a piece of Python, by a count that no other program changes?

Calls of functions, ours and those in C. Where work grows faster than what it is done on, they do,
too, but for what one call in C does alone: a regular expression that goes back again and again is
judged by its time.
"""

import cProfile
from collections.abc import Callable


def counted_calls(work: Callable[[], object]) -> int:
    profile = cProfile.Profile()
    profile.enable()
    try:
        work()
    finally:
        profile.disable()
    return sum(entry.callcount for entry in profile.getstats())
