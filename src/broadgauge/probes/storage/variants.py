"""What is one thing that is measured of a storage, and what comes of it?

The probe prepares it, lets all ranks meet, runs it between two marks, and cleans up: whatever
phase it belongs to. All ranks have the same variants in the same order.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from broadgauge.messages.storage import CacheProof, StorageBlock, StoragePhaseWord
from broadgauge.probes.storage.accounting import Operations, Parts, Usage
from broadgauge.probes.storage.place import OwnPlace
from broadgauge.probes.storage.ranks import Peers

Cache = Literal["cold", "warm"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What this rank found; StorageBlock has the meanings."""

    num_bytes: int
    stall_s: float
    busy_s: float
    usage: Usage
    operations: Operations = field(default_factory=Operations)
    parts_s: dict[str, float] = field(default_factory=dict)
    durable_s: float | None = None
    durable_evidence: str = ""
    samples: int = 0
    step_stalls_s: tuple[float, ...] = ()
    num_operations: int | None = None
    """None: as many as were timed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    phase: StoragePhaseWord
    name: str
    asked_cache: Cache | None
    run: Callable[[], Figures]
    """Timed. May hold collectives, which all ranks reach."""
    prepare: Callable[[], None] = lambda: None
    """Not timed; no collective in it, since other ranks may have failed."""
    meet: Callable[[], None] = lambda: None
    """Not timed, after every rank has prepared: collectives that the run needs."""
    prove: Callable[[Figures], CacheProof | None] = lambda _: None
    """After it has run; may hold collectives, so that every rank whose run succeeded comes here."""
    clean: Callable[[], None] = lambda: None
    written_bytes: int = 0
    """By all ranks together, at most, in `prepare` and `run`."""

    @property
    def label(self) -> str:
        """Of its marks: unique in the trial."""
        cache = f"/{self.asked_cache}" if self.asked_cache else ""
        return f"{self.phase}/{self.name}{cache}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """Where and with whom: what every phase needs."""

    own: OwnPlace
    ranks: Peers
    local_rank: int
    caches: tuple[Cache, ...]
    time_left_s: Callable[[], float]

    @property
    def caches_here(self) -> tuple[Cache, ...]:
        """Nothing keeps objects that are read without a mount, so they are never warm."""
        return self.caches if self.own.folder is not None else ("cold",)

    @property
    def is_writer(self) -> bool:
        """Does this rank write what all that see the same files read?"""
        return self.ranks.rank == 0 if self.own.place.is_shared else self.local_rank == 0

    def copies(self, nodes: int) -> int:
        """How many of them are written."""
        return 1 if self.own.place.is_shared else nodes


def block_of(
    trial_id: str, variant: Variant, figures: Figures, began_s: float, proof: CacheProof | None
) -> StorageBlock:
    operations = figures.operations
    count = figures.num_operations
    return StorageBlock(
        trial_id=trial_id,
        phase=variant.phase,
        variant=variant.name,
        asked_cache=variant.asked_cache,
        cache=proof,
        num_bytes=figures.num_bytes,
        stall_s=figures.stall_s,
        busy_s=figures.busy_s,
        durable_s=figures.durable_s,
        durable_evidence=figures.durable_evidence,
        operations=operations.count if count is None else count,
        operation_s=operations.chosen(),
        parts_s=figures.parts_s,
        began_s=began_s,
        cpu_s=figures.usage.cpu_s,
        read_bytes=figures.usage.read_bytes,
        samples=figures.samples,
        step_stalls_s=figures.step_stalls_s,
    )


def parts_in_order(parts: Parts, names: tuple[str, ...]) -> dict[str, float]:
    return {name: parts.seconds[name] for name in names if name in parts.seconds}
