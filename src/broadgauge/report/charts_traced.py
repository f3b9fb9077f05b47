"""Where does each case's step go? A stacked bar a traced case, as a Vega-Lite specification."""

from collections.abc import Sequence

from broadgauge.report.chart_parts import (
    COMPUTE_COLOUR,
    COST_COLOUR,
    ONE_NODE_COLOUR,
    PALETTE,
    Spec,
    bar_label,
)
from broadgauge.report.charts_stacked import stacked_chart, stacked_rows
from broadgauge.report.step_parts import PART_WORDS
from broadgauge.results.model import RunSummary
from broadgauge.results.traced_cases import TracedCase

COLOURS = {
    "compute": COMPUTE_COLOUR,
    "fsdp_copies": PALETTE[6],
    "exposed_communication": COST_COLOUR,
    "straggler_wait": PALETTE[3],
    "data_wait": PALETTE[0],
    "checkpoint": PALETTE[2],
    "host_idle": PALETTE[4],
    "other": ONE_NODE_COLOUR,
}


def traced_chart(run: RunSummary, cases: Sequence[TracedCase]) -> Spec | None:
    """The parts of a step, stacked; they end where the traced step does."""
    return stacked_chart(
        [row for case in cases for row in _bar(run, case)],
        {words: COLOURS[part] for part, words in PART_WORDS.items()},
        [case.step_time_s for case in cases],
        title="time of a traced step",
        of_the_step="share",
    )


def _bar(run: RunSummary, case: TracedCase) -> list[Spec]:
    parts_s = {words: case.traced.parts_s.get(part) for part, words in PART_WORDS.items()}
    return stacked_rows(bar_label(case.summary, run), parts_s, case.step_time_s)
