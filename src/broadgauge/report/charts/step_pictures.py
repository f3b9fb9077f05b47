"""Which pictures show what the steps of jobs took?"""

from collections.abc import Iterator, Sequence

from broadgauge.analysis.model import AnalysedRun
from broadgauge.report.charts.points import loss_curves, step_boxes
from broadgauge.report.charts.training import (
    cost_chart,
    loss_chart,
    step_chart,
    throughput_chart,
)
from broadgauge.report.kinds.kind import Chart, ChartGroup
from broadgauge.results.model import CaseSummary, RunSummary


def _of_steps(analysed: AnalysedRun, jobs: Sequence[CaseSummary]) -> Iterator[Chart]:
    run = analysed.run
    yield Chart(
        title="Throughput",
        how="Tokens a second of all ranks; the line is the 95 % interval over launches.",
        spec=throughput_chart(run, jobs),
    )
    yield Chart(
        title="What the network costs",
        how="The same step with and without communication, interleaved in each trial. The line is "
        "the 95 % interval of the whole step.",
        spec=cost_chart(run, jobs),
    )
    yield from _of_ladders(run)
    yield Chart(
        title="Times of single steps",
        how="Each tick a step (slowest rank; some of many), box: the middle half, line: 5th to "
        "95th percentile, over all launches.",
        spec=step_chart(run, step_boxes(run, jobs)),
    )
    yield Chart(
        title="Loss against time",
        how="Training loss with communication on, against the time its steps took; first launch "
        "of each case. Smoothed: each point is the mean of the tenth of all steps around it.",
        spec=loss_chart(run, loss_curves(run, jobs)),
    )


def _of_ladders(run: RunSummary) -> Iterator[Chart]:
    # Here, so that runs without a ladder are shown without numpy.
    from broadgauge.advise.ladders.ladders_of_run import seen_ladders
    from broadgauge.report.charts.sensitivity import ladder_chart, ladder_words

    for ladder in seen_ladders(run):
        yield Chart(
            title=f"Sensitivity of {ladder.label}",
            how=ladder_words(ladder),
            spec=ladder_chart(ladder),
        )


STEP_PICTURES: tuple[ChartGroup, ...] = (_of_steps,)
"""Of all kinds of jobs with steps together, so that they share their axes."""
