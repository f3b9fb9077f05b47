"""When did a training save, and how long was each step around it?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from broadgauge.report.chart_parts import (
    COST_COLOUR,
    Spec,
    bar_label,
    case_colours,
    frame,
    linear_ticks,
    printed_axis,
    rows_of,
    tips,
)
from broadgauge.results.folder.series import series_or_none
from broadgauge.results.model import STEP_SERIES, CaseSummary, RunSummary
from broadgauge.specs.checkpoint_rows import CheckpointRow
from broadgauge.specs.units import show_count, show_time

MOST_STEPS = 400
"""Drawn of a case: those around its last saves."""
SAVING_TITLE = "Steps and checkpoints"
SAVING_HOW = (
    "Each step's time (slowest rank), first launch of each case; an upright line is a checkpoint, "
    "as high as training stood still for it. That time is in no step; steps behind it that rise "
    "ran while it was written in the background."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SavingSteps:
    """The measured steps of one training, numbered from 1, and its checkpoints."""

    label: str
    network: str
    steps: tuple[tuple[int, float], ...]
    saves: tuple[CheckpointRow, ...]


def saving_steps(run: RunSummary, cases: Sequence[CaseSummary]) -> tuple[SavingSteps, ...]:
    """Of the cases that save."""
    found = (_of_case(run, summary) for summary in cases)
    return tuple(each for each in found if each is not None)


def _of_case(run: RunSummary, summary: CaseSummary) -> SavingSteps | None:
    for record in summary.good:
        seconds = series_or_none(run.folder, record, STEP_SERIES)
        if not record.checkpoints or seconds is None:
            continue
        numbered = list(enumerate(seconds.tolist(), start=1))[-MOST_STEPS:]
        first = numbered[0][0] if numbered else 1
        saves = (row for row in record.checkpoints if row.stall_s is not None)
        return SavingSteps(
            label=bar_label(summary, run),
            network=summary.case.network_name,
            steps=tuple(pair for pair in numbered if pair[1] == pair[1]),
            saves=tuple(row for row in saves if row.after_step >= first),
        )
    return None


def checkpoint_chart(run: RunSummary, trainings: Sequence[SavingSteps]) -> Spec | None:
    """None: nothing was saved."""
    steps = [row for each in trainings for row in _step_rows(each)]
    saves = [row for each in trainings for row in _save_rows(each)]
    if not steps or not saves:
        return None
    ticks = linear_ticks(max(float(str(row["seconds"])) for row in (*steps, *saves)))
    x: Spec = {
        "field": "step",
        "type": "quantitative",
        "scale": {"zero": False, "nice": False},
        "axis": {"title": "measured step", "tickMinStep": 1, "grid": False},
    }
    y: Spec = {
        "field": "seconds",
        "type": "quantitative",
        "scale": {"domain": [0, ticks[-1]], "nice": False},
        "axis": printed_axis(ticks, show_time, title="time"),
    }
    layers: list[Spec] = [
        {
            "data": rows_of(saves),
            "mark": {"type": "rule", "strokeWidth": 2, "color": COST_COLOUR, "opacity": 0.8},
            "encoding": {
                "x": x,
                "y": y,
                "y2": {"datum": 0},
                "tooltip": tips(case="case", checkpoint="when", stall="words", slowest="slowest"),
            },
        },
        {
            "data": rows_of(steps),
            "mark": {"type": "line", "strokeWidth": 1.5, "point": {"size": 14}},
            "encoding": {
                "x": x,
                "y": y,
                "color": case_colours(steps, run),
                "detail": {"field": "case", "type": "nominal"},
                "tooltip": tips(case="case", step="number", time="words"),
            },
        },
    ]
    return frame(layers, height=240)


def _step_rows(training: SavingSteps) -> list[Spec]:
    return [
        {
            "case": training.label,
            "network": training.network,
            "step": number,
            "number": show_count(number),
            "seconds": seconds,
            "words": show_time(seconds),
        }
        for number, seconds in training.steps
    ]


def _save_rows(training: SavingSteps) -> list[Spec]:
    """Between its step and the next."""
    return [
        {
            "case": training.label,
            "step": row.after_step + 0.5,
            "seconds": row.stall_s,
            "when": f"after step {row.after_step}",
            "words": show_time(row.stall_s or 0.0),
            "slowest": _slowest(row),
        }
        for row in training.saves
    ]


def _slowest(row: CheckpointRow) -> str:
    if row.slowest_rank is None or row.slowest_stall_s is None:
        return "–"
    return (
        f"rank {row.slowest_rank}: {show_time(row.slowest_stall_s)}, others "
        f"{show_time(row.others_stall_s or 0.0)}"
    )
