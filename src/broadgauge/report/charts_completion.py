"""How does a training go against the clock? Bars of the whole, and lines of progress, as Vega-Lite
specifications."""

from collections.abc import Sequence

from broadgauge.report.chart_parts import (
    COMPUTE_COLOUR,
    ONE_NODE_COLOUR,
    PALETTE,
    Spec,
    bar_label,
    case_colours,
    frame,
    linear_ticks,
    printed_axis,
    rows_of,
    tips,
)
from broadgauge.report.charts_stacked import stacked_chart, stacked_rows
from broadgauge.report.completion_rows import COMPLETION_WORDS
from broadgauge.report.progress import ProgressCurve
from broadgauge.results.completed_cases import CompletedCase
from broadgauge.results.model import RunSummary
from broadgauge.specs.completion import CompletionPart
from broadgauge.specs.units import show_count, show_time

COLOURS = {
    CompletionPart.START_UP: PALETTE[4],
    CompletionPart.MODEL_LOAD: PALETTE[0],
    CompletionPart.TRAINING: COMPUTE_COLOUR,
    CompletionPart.EVALUATION: PALETTE[3],
    CompletionPart.CHECKPOINTS: PALETTE[2],
    CompletionPart.OTHER: ONE_NODE_COLOUR,
}


def completion_chart(run: RunSummary, cases: Sequence[CompletedCase]) -> Spec | None:
    """The known parts of each case's whole training, stacked."""
    return stacked_chart(
        [row for case in cases for row in _bar(run, case)],
        {COMPLETION_WORDS[part]: COLOURS[part] for part in CompletionPart},
        [case.completion.total_s for case in cases],
        title="time to completion",
        of_the_whole="share",
        how="how",
    )


def _bar(run: RunSummary, case: CompletedCase) -> list[Spec]:
    completion = case.completion
    guessed = {CompletionPart.TRAINING} if completion.is_extrapolated else set()
    return stacked_rows(
        bar_label(case.summary, run),
        {COMPLETION_WORDS[part]: completion.parts_s.get(part) for part in CompletionPart},
        completion.total_s,
        how={
            COMPLETION_WORDS[part]: "extrapolated" if part in guessed else "measured"
            for part in CompletionPart
        },
    )


def progress_chart(run: RunSummary, curves: Sequence[ProgressCurve]) -> Spec | None:
    """How many steps are done when?"""
    rows: list[Spec] = [
        {
            "case": curve.label,
            "network": curve.network,
            "time": time_s,
            "steps": count,
            "when": show_time(time_s),
            "words": show_count(count),
        }
        for curve in curves
        for time_s, count in curve.points
    ]
    if not rows:
        return None
    ticks = linear_ticks(max(float(str(row["time"])) for row in rows))
    y_ticks = linear_ticks(max(float(str(row["steps"])) for row in rows))
    layer: Spec = {
        "mark": {"type": "line", "strokeWidth": 2},
        "encoding": {
            "x": {
                "field": "time",
                "type": "quantitative",
                "scale": {"domain": [0, ticks[-1]], "nice": False},
                "axis": printed_axis(ticks, show_time, title="time since the start of the ranks"),
            },
            "y": {
                "field": "steps",
                "type": "quantitative",
                "scale": {"domain": [0, y_ticks[-1]], "nice": False},
                "axis": printed_axis(y_ticks, show_count, title="steps done"),
            },
            "color": case_colours(rows, run),
            "detail": {"field": "case", "type": "nominal"},
            "tooltip": tips(case="case", time="when", steps="words"),
        },
    }
    return frame([layer], height=240) | {"data": rows_of(rows)}
