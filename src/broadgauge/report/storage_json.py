"""What does `broadgauge advise --json` print?"""

from collections.abc import Mapping
from typing import Any

from broadgauge.advise.storage.choosing import StorageAdvice, alternatives, other_reading
from broadgauge.advise.storage.constraints import lost_at_most_s
from broadgauge.advise.storage.placement import StoragePlacement
from broadgauge.predict.storage.checkpoint_interval import best_interval_s
from broadgauge.specs.storage_table import StoragePhase

FORMAT = "broadgauge storage advice"


def advice_document(advice: StorageAdvice) -> dict[str, Any]:
    """The same as plain data. `null`: none, or not known."""
    chosen = advice.chosen
    return {
        "format": FORMAT,
        "chosen": _placement(chosen),
        "lost_at_most_s": None if chosen is None else lost_at_most_s(chosen, advice.table),
        "best_interval_s": _best_interval_s(advice),
        "deciding": [
            {
                "need": price.constraint.value,
                "costs_s": price.price_s,
                "without": _placement(price.without),
            }
            for price in advice.prices
        ],
        "excluding": sorted(each.value for each in advice.excluding),
        "excluding_together": sorted(each.value for each in advice.excluding_together),
        "other_reading": {
            "resume_from": other_reading(advice.table.needs.resume_from).value,
            "chosen": _placement(advice.other_reading),
        },
        "now": _placement(advice.now),
        "alternatives": {phase.value: _alternatives(advice, phase) for phase in StoragePhase},
        "unknown": {phase.value: list(names) for phase, names in advice.unknown.items()},
    }


def _placement(placement: StoragePlacement | None) -> Mapping[str, Any] | None:
    if placement is None:
        return None
    return {
        "total_s": placement.total_s,
        "price_usd_per_hour": placement.price_usd_per_hour,
        "phases": {
            wait.phase.value: {
                "storage": wait.storage.name,
                "once_s": wait.once_s,
                "times": wait.times_count,
                "total_s": wait.total_s,
            }
            for wait in placement.waits
        },
    }


def _alternatives(advice: StorageAdvice, phase: StoragePhase) -> list[Mapping[str, Any]]:
    return [
        {
            "storage": each.placement.of(phase).storage.name,
            "more_s": each.more_s,
            "excluded_by": sorted(need.value for need in each.violated),
        }
        for each in alternatives(advice, phase)
    ]


def _best_interval_s(advice: StorageAdvice) -> float | None:
    failures_s = advice.table.job.mean_time_between_failures_s
    if advice.chosen is None or failures_s is None:
        return None
    return best_interval_s(advice.chosen.of(StoragePhase.CHECKPOINT_SAVING).once_s, failures_s)
