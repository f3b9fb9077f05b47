"""How is it put what predicted trainings wait for their storage? In tables and as plain data."""

from collections.abc import Iterator, Sequence
from typing import Any

from broadgauge.predict.answering.answers import Answer
from broadgauge.predict.case import StorageWaits
from broadgauge.predict.prediction import Prediction
from broadgauge.predict.storage.lost_hours import LostHour, lost_hours
from broadgauge.report.predict_words import label_words
from broadgauge.report.storage_words import wait_words
from broadgauge.specs.units import show_ratio

WAITS_HEAD = ("storage", "start", "data stall\na step", "a save\nstalls", "durable\nafter")
HOUR_HEAD = ("a save every", "start, of the\nfirst hour", "batches", "saves", "failures")
MOST_HOURS = 4
"""Cases whose hours are shown."""
NOTHING = "–"
UNKNOWN = "unknown"


def waits_rows(answers: Sequence[Answer]) -> list[tuple[str, ...]]:
    """One of each case that waits for a storage."""
    return [
        waits_cells(storage_label(each), waits, batch_stall_s(each.prediction))
        for each in answers
        if (waits := each.prediction.case.storage_waits) is not None
    ]


def storage_label(answer: Answer) -> str:
    """With its storage, which all cases may share."""
    label, storage = label_words(answer), answer.prediction.case.storage
    return label if storage in label else f"{storage}; {label}"


def waits_cells(label: str, waits: StorageWaits, stall_s: float) -> tuple[str, ...]:
    """Of one storage."""
    saves = waits.steps_between_saves is not None
    durable = UNKNOWN if waits.durable_s is None else wait_words(waits.durable_s)
    return (
        label,
        f"{wait_words(waits.start.value_s)}\n{_range(waits.start.low_s, waits.start.high_s)}",
        wait_words(stall_s) if stall_s else NOTHING,
        f"{wait_words(waits.save.value_s)}\n{_range(waits.save.low_s, waits.save.high_s)}"
        if saves
        else NOTHING,
        durable if saves else NOTHING,
    )


def hour_rows(hours: Sequence[LostHour]) -> list[tuple[str, ...]]:
    """One an interval."""
    return [
        (
            wait_words(each.saves.interval_s) + _which(each),
            show_ratio(each.start_ratio, 2),
            show_ratio(each.batches_ratio, 2),
            show_ratio(each.saves.saving_ratio),
            UNKNOWN if each.saves.failing_ratio is None else show_ratio(each.saves.failing_ratio),
        )
        for each in hours
    ]


def waits_notes(waits: Sequence[StorageWaits]) -> Iterator[str]:
    """What a reader must know of them."""
    yield from dict.fromkeys(
        f"when a save is durable is not known: {each.durable_words}"
        for each in waits
        if each.steps_between_saves is not None and each.durable_words
    )
    if any(each.is_waiting for each in waits):
        yield "a save is due before the one before it is written: training waits for the rest of it"
    if any(
        each.steps_between_saves is not None and each.mean_time_between_failures_s is None
        for each in waits
    ):
        yield (
            "which interval loses least depends on how often nodes fail: "
            "--mean-time-between-failures 24h"
        )


def hours_of(prediction: Prediction) -> tuple[LostHour, ...]:
    """Of a case that saves."""
    waits = prediction.case.storage_waits
    if waits is None:
        return ()
    step_s = prediction.step_time_s.value - waits.saving(waits.save.value_s)
    return lost_hours(waits, step_s, batch_stall_s(prediction))


def batch_stall_s(prediction: Prediction) -> float:
    """Of a step: what it waits for storage, less its share of saves."""
    waits = prediction.case.storage_waits
    if waits is None:
        return 0.0
    stall_s = prediction.parts.storage_s - waits.saving(waits.save.value_s)
    return stall_s if stall_s > 1e-6 * prediction.step_time_s.value else 0.0


def waits_document(
    name: str, waits: StorageWaits, stall_s: float, hours: Sequence[LostHour]
) -> dict[str, Any]:
    """For `--json`."""
    return {
        "storage": name,
        "start_s": waits.start.value_s,
        "start_low_s": waits.start.low_s,
        "start_high_s": waits.start.high_s,
        "data_stall_s": stall_s,
        "steps_between_saves": waits.steps_between_saves,
        "save_stall_s": waits.save.value_s,
        "save_stall_low_s": waits.save.low_s,
        "save_stall_high_s": waits.save.high_s,
        "durable_s": waits.durable_s,
        "durable_unknown": waits.durable_words or None,
        "lost_of_an_hour": [
            {
                "interval_s": each.saves.interval_s,
                "start_ratio": each.start_ratio,
                "batches_ratio": each.batches_ratio,
                "saving_ratio": each.saves.saving_ratio,
                "failing_ratio": each.saves.failing_ratio,
                "is_asked": each.is_asked,
                "is_best": each.is_best,
            }
            for each in hours
        ],
    }


def _which(hour: LostHour) -> str:
    words = [word for word, holds in (("asked", hour.is_asked), ("least", hour.is_best)) if holds]
    return f" ({', '.join(words)})" if words else ""


def _range(low_s: float, high_s: float) -> str:
    return f"{wait_words(low_s)} to {wait_words(high_s)}"
