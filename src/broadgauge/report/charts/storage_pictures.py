"""Which pictures show what storages gave?"""

from collections.abc import Iterator, Sequence

from broadgauge.analysis.model import AnalysedRun
from broadgauge.report.charts.parts import bars_chart, tips
from broadgauge.report.charts.points import wait_boxes
from broadgauge.report.charts.rank_timelines import rank_timelines
from broadgauge.report.charts.training import step_chart
from broadgauge.report.kinds.kind import Chart, ChartGroup
from broadgauge.results.model import CaseSummary
from broadgauge.specs.units import show_bandwidth, show_time

_HOW = (
    "Bytes of all ranks over the slowest rank's time; the line is the 95 % interval over launches."
)
_HOW_LONG = "Mean over the trial's saves; the line is the 95 % interval over launches."

_HOW_LONG_AN_EPOCH = "Mean over the trial's epochs; the line is the 95 % interval over launches."


def _of_storages(analysed: AnalysedRun, cases: Sequence[CaseSummary]) -> Iterator[Chart]:
    tooltip = tips(case="case", rate="words", interval="interval", launches="launches")
    for title, metric, how in (
        ("Read from storages", "read_gbyte_per_s", _HOW),
        ("Written to storages", "write_gbyte_per_s", f"{_HOW} Until fsync has returned."),
    ):
        yield Chart(
            title=title,
            how=how,
            spec=bars_chart(
                analysed.run, cases, metric, (show_bandwidth, "all ranks together"), tooltip
            ),
        )


def _of_checkpoints(analysed: AnalysedRun, cases: Sequence[CaseSummary]) -> Iterator[Chart]:
    tooltip = tips(case="case", time="words", interval="interval", launches="launches")
    for title, metric, how in (
        ("What training waits for a checkpoint", "save_stall_s", "rank that waits longest"),
        ("Until a checkpoint is durable", "save_durable_s", "slowest rank, fsync included"),
    ):
        spec = bars_chart(analysed.run, cases, metric, (show_time, how), tooltip)
        yield Chart(title=title, how=_HOW_LONG, spec=spec)
    yield Chart(
        title="What each rank does while a checkpoint is saved",
        how="The save of median time until durable; parts of one rank follow each other, but "
        "serialising and writing alternate.",
        spec=rank_timelines(analysed.run, cases, "since it began; tick: training goes on"),
    )


def _of_loads(analysed: AnalysedRun, cases: Sequence[CaseSummary]) -> Iterator[Chart]:
    tooltip = tips(case="case", time="words", interval="interval", launches="launches")
    how = (show_time, "slowest rank")
    yield Chart(
        title="Until a model is loaded",
        how="Mean over the trial's loads; the line is the 95 % interval over launches.",
        spec=bars_chart(analysed.run, cases, "model_load_s", how, tooltip),
    )
    yield Chart(
        title="What each rank does while a model is loaded",
        how="The load of median time; parts of one rank follow each other, but reading and "
        "deserialising, or reading and sending tensor by tensor, alternate.",
        spec=rank_timelines(analysed.run, cases, "since it began"),
    )


def _of_batches(analysed: AnalysedRun, cases: Sequence[CaseSummary]) -> Iterator[Chart]:
    tooltip = tips(case="case", time="words", interval="interval", launches="launches")
    for title, metric, how, detail in (
        (
            "What a rank waits for 100 samples",
            "wait_per_100_samples_s",
            "rank that waits longest",
            "The start of its workers is a part of it.",
        ),
        (
            "What a step waits for its batch, 99 of 100 at most",
            "batch_wait_p99_s",
            "rank where it is longest",
            "The first step of an epoch is left out.",
        ),
    ):
        spec = bars_chart(analysed.run, cases, metric, (show_time, how), tooltip)
        yield Chart(title=title, how=f"{_HOW_LONG_AN_EPOCH} {detail}", spec=spec)
    yield Chart(
        title="Waits of single steps",
        how="Each tick a step after the first of its epoch (slowest rank; some of many), box: the "
        "middle half, line: 5th to 95th percentile, over all launches.",
        spec=step_chart(
            analysed.run, wait_boxes(analysed.run, cases), "what a step waits for its batch"
        ),
    )


RAW_FILES_PICTURES: tuple[ChartGroup, ...] = (_of_storages,)
MODEL_LOAD_PICTURES: tuple[ChartGroup, ...] = (_of_storages, _of_loads)
BATCHES_PICTURES: tuple[ChartGroup, ...] = (_of_batches,)
CHECKPOINT_PICTURES: tuple[ChartGroup, ...] = (_of_storages, _of_checkpoints)
