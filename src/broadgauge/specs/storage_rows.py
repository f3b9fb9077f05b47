"""What is kept of one phase on one storage? All ranks merged, the slowest deciding."""

from typing import Literal

from pydantic import Field

from broadgauge.messages.storage import CacheState, StoragePhaseWord
from broadgauge.specs.base import StoredModel

CACHE_ORDER: dict[CacheState | None, int] = {"cold": 0, "unknown": 1, None: 1, "warm": 2}
"""Which of two figures of one variant speaks for it: a warm one is memory's."""


class StorageRow(StoredModel):
    """One phase in one variant and one state of the cache."""

    phase: StoragePhaseWord
    variant: str
    asked_cache: Literal["cold", "warm"] | None = None
    """None: a phase that writes."""
    cache: CacheState | None = None
    """What was proven, whatever was asked; None: a phase that writes."""
    cache_evidence: str = ""
    num_bytes: int = 0
    """Of all ranks."""
    wait_s: float | None = None
    """How long training waits, slowest rank: the stall of a save, the load, or the stalls of all
    batches. None: not measured, `problem` says why."""
    durable_s: float | None = None
    """From the begin of a save until the last rank's part is durable."""
    durable_evidence: str = ""
    gbyte_per_s: float | None = None
    """All ranks' bytes over the time from the first rank's begin to the last one's end; of a save
    in the background until it is durable."""
    operations: int = 0
    operation_p50_s: float | None = None
    operation_p99_s: float | None = None
    """None below 500 operations."""
    cpu_s: float | None = None
    """Of all ranks."""
    read_bytes: int | None = None
    parts_s: dict[str, float] = Field(default_factory=dict)
    """Of the slowest rank."""
    samples: int = 0
    """Of batch loading, of all ranks."""
    problem: str = ""
