"""Which placement makes training wait least, what decided that, and what does it cost?

Source of the rule: shared constraints of the article "Network and Storage Benchmarks for LLM
Training on the Cloud" (SkyPilot, 2025-09-11): checkpoints are durable, and where the model is
loaded from; its silent one, that the data outlives the node, is what gives its own choice.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from broadgauge.advise.storage.constraints import finds_checkpoints, violated
from broadgauge.advise.storage.placement import (
    Constraint,
    StoragePlacement,
    placement_of,
    placements,
    without_figure,
)
from broadgauge.specs.storage_table import ResumeReading, StoragePhase, StorageTable


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedPrice:
    """A constraint that excludes what would be faster."""

    constraint: Constraint
    without: StoragePlacement
    """The best one, were it not for this constraint."""
    price_s: float
    """How much longer training waits because of it; above 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """The chosen placement, with another storage in one phase."""

    placement: StoragePlacement
    violated: frozenset[Constraint]
    more_s: float
    """What training waits longer; below 0 only where needs exclude it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageAdvice:
    """What follows from a table."""

    table: StorageTable
    chosen: StoragePlacement | None
    """None: nothing meets the needs."""
    prices: tuple[NeedPrice, ...]
    """Of the constraints that bind, the dearest first."""
    other_reading: StoragePlacement | None
    """The best one where resuming is understood the other way; None: the same, or none."""
    now: StoragePlacement | None
    unknown: dict[StoragePhase, tuple[str, ...]]
    """Storages whose figure of a phase is not known."""
    excluding: frozenset[Constraint]
    """Where nothing was chosen: those without any one of which something would be."""
    excluding_together: frozenset[Constraint]
    """Where leaving out one is not enough: the fewest without which something would be."""


def advise(table: StorageTable) -> StorageAdvice:
    """The choice, by looking at every placement."""
    judged = [(each, violated(each, table)) for each in placements(table)]
    chosen = _best(each for each, against in judged if not against)
    fewest = min((against for _, against in judged), key=_number_and_names, default=frozenset())
    return StorageAdvice(
        table=table,
        chosen=chosen,
        prices=() if chosen is None else _prices(judged, chosen),
        other_reading=_by_other_reading(judged, table, chosen),
        now=placement_of(table, table.now.names()),
        unknown=without_figure(table),
        excluding=frozenset()
        if chosen is not None
        else frozenset(one for _, against in judged if len(against) == 1 for one in against),
        excluding_together=fewest if len(fewest) > 1 else frozenset(),
    )


def other_reading(reading: ResumeReading) -> ResumeReading:
    """Same store or same mount: an article's constraint can be read both ways."""
    return (
        ResumeReading.SAME_MOUNT
        if reading is ResumeReading.SAME_STORE
        else ResumeReading.SAME_STORE
    )


def alternatives(advice: StorageAdvice, phase: StoragePhase) -> tuple[Alternative, ...]:
    """Each other storage in this phase, the shortest wait first."""
    chosen = advice.chosen
    if chosen is None:
        return ()
    names = {wait.phase: wait.storage.name for wait in chosen.waits}
    others = [each.name for each in advice.table.storages if each.name != names[phase]]
    found = (placement_of(advice.table, names | {phase: other}) for other in others)
    return tuple(
        Alternative(
            placement=each,
            violated=violated(each, advice.table),
            more_s=each.total_s - chosen.total_s,
        )
        for each in sorted(filter(None, found), key=_order)
    )


def _prices(
    judged: list[tuple[StoragePlacement, frozenset[Constraint]]], chosen: StoragePlacement
) -> tuple[NeedPrice, ...]:
    prices = []
    for constraint in Constraint:
        without = _best(each for each, against in judged if against <= {constraint})
        if without is not None and without.total_s < chosen.total_s:
            price_s = chosen.total_s - without.total_s
            prices.append(NeedPrice(constraint=constraint, without=without, price_s=price_s))
    return tuple(sorted(prices, key=lambda each: -each.price_s))


def _by_other_reading(
    judged: list[tuple[StoragePlacement, frozenset[Constraint]]],
    table: StorageTable,
    chosen: StoragePlacement | None,
) -> StoragePlacement | None:
    reading = other_reading(table.needs.resume_from)
    found = _best(
        each
        for each, against in judged
        if against <= {Constraint.RESUME_FROM} and finds_checkpoints(each, reading)
    )
    return None if found == chosen else found


def _best(found: Iterable[StoragePlacement]) -> StoragePlacement | None:
    return min(found, key=_order, default=None)


def _number_and_names(needs: frozenset[Constraint]) -> tuple[int, list[Constraint]]:
    return len(needs), sorted(needs)


def _order(placement: StoragePlacement) -> tuple[object, ...]:
    """The least wait; then the least dollars; then the least wait of each phase once; then names.

    A phase that never comes takes what is fastest, so that no dominated storage is chosen.
    """
    once_s = tuple(each.once_s for each in placement.waits)
    names = tuple(each.storage.name for each in placement.waits)
    return (placement.total_s, placement.price_usd_per_hour, sum(once_s), once_s, names)
