"""How well does a system file predict a run? A row a training, then errors and order."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from rich.console import Console

from broadgauge.predict.runs.check import CheckedStep
from broadgauge.report.terminal.tables import heading, print_table, sentence
from broadgauge.specs.units import show_ratio, show_time

DIFFERENT_RATIO = 1.1
"""Two measured steps that differ by less say nothing of order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemScores:
    """Over all steps of a run."""

    num_steps: int
    mape_ratio: float
    """Mean of the errors' sizes."""
    median_ape_ratio: float
    worst_ape_ratio: float
    bias_ratio: float
    """Geometric mean of predicted over measured, less one."""
    pair_order_ratio: float | None
    """Of the pairs that differ by more than 10 %, how many are predicted in their order?"""


def scores(steps: Sequence[CheckedStep]) -> SystemScores:
    """At least one step."""
    errors = [abs(step.error_ratio) for step in steps]
    logs = [math.log(step.predicted_s / step.measured_s) for step in steps]
    pairs = [
        (a.predicted_s < b.predicted_s) == (a.measured_s < b.measured_s)
        for place, a in enumerate(steps)
        for b in steps[:place]
        if max(a.measured_s, b.measured_s) > DIFFERENT_RATIO * min(a.measured_s, b.measured_s)
    ]
    return SystemScores(
        num_steps=len(steps),
        mape_ratio=statistics.fmean(errors),
        median_ape_ratio=statistics.median(errors),
        worst_ape_ratio=max(errors),
        bias_ratio=math.exp(statistics.fmean(logs)) - 1,
        pair_order_ratio=statistics.fmean(pairs) if pairs else None,
    )


def print_check(steps: Sequence[CheckedStep], console: Console) -> None:
    """The table and the scores."""
    rows = [
        (
            step.label,
            show_time(step.measured_s),
            show_time(step.predicted_s),
            _signed(step.error_ratio),
            "–"
            if step.measured_without_s is None
            else _signed(step.predicted_without_s / step.measured_without_s - 1),
        )
        for step in steps
    ]
    print_table(("training", "measured", "predicted", "error", "of compute"), rows, console)
    found = scores(steps)
    heading(f"{found.num_steps} steps", console)
    order = "–" if found.pair_order_ratio is None else show_ratio(found.pair_order_ratio)
    sentence(
        f"MAPE {show_ratio(found.mape_ratio)}, median {show_ratio(found.median_ape_ratio)}, worst "
        f"{show_ratio(found.worst_ape_ratio)}, bias {_signed(found.bias_ratio)}, pairs in order "
        f"{order}",
        console,
    )


def check_document(steps: Sequence[CheckedStep]) -> dict[str, object]:
    """The same as plain data."""
    return {
        "format": "broadgauge calibration check",
        "overall": asdict(scores(steps)),
        "steps": [{**asdict(step), "error_ratio": step.error_ratio} for step in steps],
    }


def _signed(ratio: float) -> str:
    return f"{ratio:+.1%}".replace("%", " %")
