"""How much of a log is kept? What a real job says, of a hostile one no more than fits."""

from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import TypeVar

MOST_FACTS = 1_000_000
"""A job of 65,536 ranks tells about fifteen of each; one takes about 200 bytes."""
MOST_PROCESSES = 1 << 16
MOST_COMMUNICATORS = 1 << 14
MOST_RANKS = 1 << 17
"""Of a communicator. More than any machine has: such a line is damaged."""

_LONGEST_NAME = 256
"""Characters; of Linux' names of files and hosts none has more."""

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


@dataclass(slots=True)
class Room:
    """Counts what is kept, and what would have been."""

    left: int = field(default_factory=lambda: MOST_FACTS)
    num_left_out: int = 0

    def take(self) -> bool:
        """Is there room for one more?"""
        if self.left <= 0:
            self.num_left_out += 1
            return False
        self.left -= 1
        return True

    def put(self, known: MutableMapping[_Key, _Value], key: _Key, value: _Value) -> None:
        """A new value of a known key takes no room."""
        if key in known or (not _is_long(key) and self.take()):
            known[key] = value

    def add(self, known: set[_Key], value: _Key) -> None:
        if value not in known and not _is_long(value) and self.take():
            known.add(value)


def _is_long(name: object) -> bool:
    return isinstance(name, str) and len(name) > _LONGEST_NAME


def is_rank(rank: int, num_ranks: int) -> bool:
    """Could a communicator of this size have this rank?"""
    return 0 <= rank < num_ranks <= MOST_RANKS
