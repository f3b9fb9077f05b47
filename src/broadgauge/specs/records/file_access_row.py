"""What is kept of one repetition of a phase on a storage, all ranks together?"""

from broadgauge.messages.storage import Access, CacheState
from broadgauge.specs.base import StoredModel

WAITING = frozenset(("plan", "metadata", "broadcast", "other ranks"))
"""Parts in which ranks may wait for each other."""


class FileAccessRow(StoredModel):
    """Times are of the slowest rank, which is named."""

    access: Access
    repetition: int
    size_bytes: int
    """Of all ranks."""
    time_s: float
    slowest_rank: int
    parts_s: dict[str, float]
    """Of that rank, by name in their order; they add up to `time_s`."""
    operations: int | None
    """Calls to the kernel that moved the files' bytes, of all ranks; None: not counted."""
    stall_s: float | None = None
    """How long did training wait? Of the rank that waited longest; None: nothing is trained."""
    parts_of_ranks: tuple[dict[str, float], ...] = ()
    """The same of every rank, by rank; empty where nothing is trained."""
    waits_s: tuple[float, ...] = ()
    """Of the slowest rank, for the batch of each step, the first one included; empty: no batches
    were loaded."""
    device_bytes: int | None = None
    """Read from block devices by all ranks, or left to the kernel to write; None: not counted."""
    cached_before_bytes: int | None = None
    """Of the files of all ranks, in memory just before; None: a write, or the kernel does not say.
    """
    cache: CacheState | None = None
    """Where the ranks' bytes came from; `unknown` where they differ. None: a write."""
    evidence: str = ""
    """Of the slowest rank that reads."""
    file_system: str | None = None
    held_ratio: float | None = None
    """Of the bytes of all files, what their file system holds at most: below 1 where it compresses.
    None: it does not say."""

    @property
    def busiest_parts_s(self) -> dict[str, float]:
        """Of the rank that works longest: where ranks end together, the slowest may be one that
        only waited."""

        def worked_s(parts_s: dict[str, float]) -> float:
            return sum(seconds for part, seconds in parts_s.items() if part not in WAITING)

        return max((self.parts_s, *self.parts_of_ranks), key=worked_s)
