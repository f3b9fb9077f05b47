"""What share of an hour does a training lose to its storage, by phase and checkpoint interval?"""

from dataclasses import dataclass

from broadgauge.predict.case import StorageWaits
from broadgauge.predict.storage.checkpoint_interval import (
    LostShare,
    best_interval_s,
    is_first_order,
    lost_share,
)

HOUR_S = 3600.0
INTERVALS_S = (300.0, 900.0, 1800.0, 3600.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LostHour:
    """With one interval from save to save."""

    start_ratio: float
    """Of the first hour: loading the model and the first batch."""
    batches_ratio: float
    """Of the time that is no save: steps that wait for their data."""
    saves: LostShare
    is_asked: bool
    """The interval of the steps that were asked for."""
    is_best: bool
    """Least is lost at this interval."""


def share_at(waits: StorageWaits, interval_s: float) -> LostShare:
    """Saves whose begins would be `interval_s` apart, were none in the way of the next.

    In the background a save is due when its work is done, and waits for what is left of the one
    before: no two begin sooner after each other than one takes.
    """
    work_s = max(0.0, interval_s - waits.least_stall_s)
    apart_s = max(interval_s, waits.written_s)
    return lost_share(
        apart_s,
        stall_s=apart_s - work_s,
        durable_s=waits.durable_s,
        load_s=waits.start.value_s,
        mean_time_between_failures_s=waits.mean_time_between_failures_s,
    )


def lost_hours(waits: StorageWaits, step_s: float, batch_stall_s: float) -> tuple[LostHour, ...]:
    """By interval, the best and that which was asked for among them. Both times are of a step, its
    stalls included, saves apart."""
    if waits.steps_between_saves is None:
        return ()
    asked_s = waits.steps_between_saves * step_s + waits.least_stall_s
    best_s = young_interval_s(waits)
    usual = [each for each in INTERVALS_S if each > waits.written_s]
    intervals_s = sorted({*usual, asked_s, *([] if best_s is None else [best_s])})
    return tuple(
        LostHour(
            start_ratio=min(1.0, waits.start.value_s / HOUR_S),
            batches_ratio=batch_stall_s / step_s if step_s else 0.0,
            saves=share_at(waits, interval_s),
            is_asked=interval_s == asked_s,
            is_best=interval_s == best_s,
        )
        for interval_s in intervals_s
    )


def young_interval_s(waits: StorageWaits) -> float | None:
    """No shorter than a save takes; None: the rate of failures is not told, or no interval is
    good."""
    failures_s = waits.mean_time_between_failures_s
    if failures_s is None or not waits.least_stall_s:
        return None
    if not is_first_order(waits.least_stall_s, failures_s):
        return None
    return max(best_interval_s(waits.least_stall_s, failures_s), waits.written_s)
