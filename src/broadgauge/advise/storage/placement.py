"""What does it cost to give each phase of a training a storage?"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from broadgauge.specs.storage_table import StorageFigures, StoragePhase, StorageTable


class Constraint(StrEnum):
    """What excludes a placement."""

    DURABLE_CHECKPOINTS = "durable_checkpoints"
    DURABLE_DATA = "durable_data"
    RESUME_FROM = "resume_from"
    LOSE_AT_MOST = "lose_at_most_s"
    ROOM = "room_bytes"
    BUDGET = "most_usd_per_hour"
    COLD_DATA = "batch_cache"


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseWait:
    """One phase on one storage."""

    phase: StoragePhase
    storage: StorageFigures
    once_s: float
    """Of 100 samples, of one load, of one save."""
    times_count: float

    @property
    def total_s(self) -> float:
        return self.once_s * self.times_count


_PLACES = {phase: place for place, phase in enumerate(StoragePhase)}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoragePlacement:
    """A storage for each phase whose figure is known for it."""

    waits: tuple[PhaseWait, ...]
    """In the order of the phases."""

    @property
    def total_s(self) -> float:
        """What training waits for storage in the whole job."""
        return sum(each.total_s for each in self.waits)

    @property
    def price_usd_per_hour(self) -> float:
        """Of every storage that is used, once."""
        used = {each.storage.name: each.storage.price_usd_per_hour for each in self.waits}
        return sum(used.values())

    def of(self, phase: StoragePhase) -> PhaseWait:
        return self.waits[_PLACES[phase]]


def placements(table: StorageTable) -> Iterator[StoragePlacement]:
    """Every one, whether it meets the needs or not."""
    for waits in itertools.product(*(_waits(table, phase) for phase in StoragePhase)):
        yield StoragePlacement(waits=waits)


def without_figure(table: StorageTable) -> dict[StoragePhase, tuple[str, ...]]:
    """Storages that can't be chosen for a phase, since nobody knows how long it takes there."""
    return {
        phase: tuple(each.name for each in table.storages if each.phase_s(phase) is None)
        for phase in StoragePhase
    }


def placement_of(table: StorageTable, names: dict[StoragePhase, str]) -> StoragePlacement | None:
    """With these storages. None where a phase has none, or its figure is not known."""
    waits = []
    for phase in StoragePhase:
        wait = next(
            (each for each in _waits(table, phase) if each.storage.name == names.get(phase)), None
        )
        if wait is None:
            return None
        waits.append(wait)
    return StoragePlacement(waits=tuple(waits))


def _waits(table: StorageTable, phase: StoragePhase) -> list[PhaseWait]:
    return [
        PhaseWait(phase=phase, storage=each, once_s=once_s, times_count=table.job.times(phase))
        for each in table.storages
        if (once_s := each.phase_s(phase)) is not None
    ]
