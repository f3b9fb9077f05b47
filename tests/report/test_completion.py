"""Is shown what a whole training takes, with what is extrapolated and what is unknown?"""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.report.sample_run import Options, sample_run

from broadgauge.analysis.analyse import analysed
from broadgauge.report.charts_completion import completion_chart, progress_chart
from broadgauge.report.completion_rows import COMPLETION_WORDS, completion_notes, completion_rows
from broadgauge.report.export import table_of, to_json
from broadgauge.report.html import render
from broadgauge.report.points import loss_curves
from broadgauge.report.progress import progress_curves
from broadgauge.report.terminal_completion import print_completion
from broadgauge.results.completed_cases import completed_cases
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.specs.completion import Completion, CompletionPart
from broadgauge.specs.workload import TrainWorkload

TOTALS_S = (50.0, 30.0, 40.0, 90.0, 20.0)
"""By trial; they are five, and the median 40."""


def completion(total_s: float) -> Completion:
    parts: dict[str, float | None] = dict.fromkeys(CompletionPart, 0.0)
    parts |= {"start_up": 4.0, "model_load": None, "other": 1.0, "training": total_s - 5.0}
    return Completion(
        total_s=total_s,
        parts_s=parts,
        measured_ratio=0.25,
        unknown={"model_load": "no metric `model_load_time_s`; in `start_up`"},
    )


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> RunSummary:
    return sample_run(tmp_path_factory.mktemp("run"), Options(has_failure=False))


@pytest.fixture(scope="module")
def run(plain: RunSummary) -> RunSummary:
    """What the trainings' trials say, by their place."""

    def of_case(summary: CaseSummary) -> CaseSummary:
        if not isinstance(summary.case.workload, TrainWorkload) or summary.case.nodes == 1:
            return summary
        records = tuple(
            record.model_copy(update={"completion": completion(TOTALS_S[place])})
            for place, record in enumerate(summary.records)
        )
        return replace(summary, records=records)

    cases = tuple(map(of_case, plain.cases))
    told = {record.record_id: record for case in cases for record in case.records}
    records = tuple(told.get(record.record_id, record) for record in plain.records)
    return replace(plain, cases=cases, records=records)


def test_the_median_trial_speaks_for_a_case(run: RunSummary) -> None:
    case, *_ = completed_cases(run)
    assert (case.completion.total_s, case.num_trials) == (40, 5)
    assert (case.shortest_s, case.longest_s) == (20, 90)


def test_the_table_has_the_parts_that_are_there_or_unknown(run: RunSummary) -> None:
    head, rows = completion_rows(run)
    assert head == ("", "whole", "start-up", "model load", "training", "other")
    assert rows[0][1:] == (
        "40 s\nextrapolated, 5 trials: 20 s to 90 s",
        "4 s\n10 %",
        "unknown",
        "35 s\n88 %",
        "1 s\n2.5 %",
    )
    notes = list(completion_notes(run))
    assert notes == [
        "all: training is extrapolated from its measured steps: 25 % of all steps ran",
        "all: unknown: model load (no metric `model_load_time_s`; in `start_up`)",
    ]


def test_nothing_is_said_where_nothing_is_known(plain: RunSummary) -> None:
    stream = io.StringIO()
    print_completion(plain, Console(file=stream, width=200))
    assert stream.getvalue() == ""
    assert completion_chart(plain, ()) is None
    assert progress_chart(plain, ()) is None
    assert "Time to completion" not in render(analysed(plain))


def test_bars_end_where_the_known_parts_do(run: RunSummary) -> None:
    spec = completion_chart(run, completed_cases(run)[:1])
    assert spec is not None
    data: Any = spec["data"]
    rows = data["values"]
    assert [row["part"] for row in rows] == ["start-up", "training", "other"]
    assert [row["how"] for row in rows] == ["measured", "extrapolated", "measured"]
    assert [row["start"] for row in rows[1:]] == [row["end"] for row in rows[:-1]]
    assert rows[-1]["end"] == pytest.approx(40)
    assert len(COMPLETION_WORDS) == len(CompletionPart)


def test_progress_and_loss_are_against_the_clock(run: RunSummary, plain: RunSummary) -> None:
    """The first step ends when start-up, warm-up and it have passed."""
    curve = progress_curves(run, run.cases)[0]
    summary = next(case for case in run.cases if case.good[0].completion is not None)
    record, train = summary.good[0], summary.case.workload
    assert isinstance(train, TrainWorkload)
    step_s = record.metrics["step_time_s"]
    assert step_s is not None
    before_s = 4.0 + 1.0 + train.warm_up_steps * step_s
    assert curve.points[0] == (pytest.approx(before_s), train.warm_up_steps)
    assert curve.points[-1][1] == train.warm_up_steps + train.steps
    assert list(curve.points) == sorted(curve.points)
    told = [each for each in loss_curves(run, run.cases) if each.is_since_start]
    assert told
    assert told[0].points[0][0] > before_s
    assert progress_curves(plain, plain.cases) == ()
    assert not any(each.is_since_start for each in loss_curves(plain, plain.cases))


def test_the_page_has_table_and_pictures(run: RunSummary) -> None:
    page = render(analysed(run))
    assert page.count("Time to completion") == 2
    assert "Progress against time" in page


def test_exports_have_the_parts(run: RunSummary, tmp_path: Path) -> None:
    table = table_of(analysed(run))
    names = [column.name for column in table.columns]
    rows = [dict(zip(names, row, strict=True)) for row in table.rows]
    told = [row for row in rows if row["completion_total_s"] is not None]
    assert told
    for row in told:
        parts = [row[f"completion_{part.value}_s"] for part in CompletionPart]
        assert sum(part for part in parts if isinstance(part, float)) == row["completion_total_s"]
        assert row["completion_model_load_s"] is None
        assert row["completion_measured_ratio"] == 0.25
    cases = json.loads(to_json(analysed(run)))["cases"]
    (first, *_) = [case["completion"] for case in cases if case["completion"] is not None]
    assert (first["total_s"], first["longest_s"]) == (40, 90)
