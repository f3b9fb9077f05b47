"""How much of a node's memory does a pod need, part by part, as far as that is known?"""

from dataclasses import dataclass

from broadgauge.wording.amounts import show_size

MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPart:
    """One of the things that a pod holds in its node's memory."""

    what: str
    """`8 ranks' processes`."""
    size_bytes: int
    source: str
    """Where the figure comes from."""

    @property
    def words(self) -> str:
        """`8 ranks' processes 13 GiB (measured …)`."""
        return f"{self.what} {show_size(self.size_bytes)} ({self.source})"


def memory_part(what: str, size_bytes: float, source: str) -> MemoryPart:
    """In whole MiB, upwards."""
    return MemoryPart(what=what, size_bytes=-int(-size_bytes // MIB) * MIB, source=source)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryNeed:
    """Of one pod."""

    parts: tuple[MemoryPart, ...] = ()
    unknown: tuple[str, ...] = ()
    """What is not in the parts, because nobody knows it: `the command train.py`."""

    @property
    def total_bytes(self) -> int | None:
        """None: too little is known to ask for any."""
        if self.unknown or not self.parts:
            return None
        return sum(part.size_bytes for part in self.parts)

    @property
    def known_bytes(self) -> int:
        """Of what is known, whatever is not."""
        return sum(part.size_bytes for part in self.parts)

    @property
    def words(self) -> str:
        """The parts, each with its source."""
        return "; ".join(part.words for part in self.parts)
