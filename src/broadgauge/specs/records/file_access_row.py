"""What is kept of one repetition of a phase on a storage, all ranks together?"""

from broadgauge.messages.storage import Access, CacheState
from broadgauge.specs.base import StoredModel


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
    operations: int | None = None
    """Calls to the kernel that moved bytes, of all ranks; None: not counted."""
    stall_s: float | None = None
    """How long did training wait? Of the rank that waited longest; None: nothing is trained."""
    parts_of_ranks: tuple[dict[str, float], ...] = ()
    """The same of every rank of a checkpoint, by rank; else empty."""
    device_bytes: int | None = None
    """Read from block devices by all ranks, or written to them; None: not counted."""
    cached_before_bytes: int | None = None
    """Of the files of all ranks, in memory just before; None: a write, or the kernel does not say.
    """
    cache: CacheState | None = None
    """Where the ranks' bytes came from; `unknown` where they differ. None: a write."""
    evidence: str = ""
    """Of the slowest rank."""
    file_system: str | None = None
