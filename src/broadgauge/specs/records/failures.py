"""Did two trials fail alike, so that a third one would tell nothing new?"""

import re

from broadgauge.specs.records.record import TrialError

NOT_AGAIN = "not run, since it failed so before: "
"""How the reason of a trial begins that was skipped for the failures of its case."""
_NUMBER = re.compile(r"\d+(\.\d+)?(e[+-]?\d+)?")


def is_alike(one: TrialError | None, other: TrialError | None) -> bool:
    """The same kind of failure of the same rank, at the same line of its own; where none is known,
    in the same words but for their numbers."""
    if one is None or other is None:
        return one is other
    if (one.kind, one.rank, one.frame) != (other.kind, other.rank, other.frame):
        return False
    return one.frame is not None or _without_numbers(one) == _without_numbers(other)


def _without_numbers(error: TrialError) -> str:
    return _NUMBER.sub("#", error.message)
