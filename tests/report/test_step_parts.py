"""Is shown where a step's time goes, by the trial that is the median, and what must be known?"""

import io
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.report.sample_run import Options, sample_run

from broadgauge.analysis.analyse import analysed
from broadgauge.report.charts_traced import traced_chart
from broadgauge.report.html import render
from broadgauge.report.step_parts import BUSY, PART_WORDS, collective_rows, part_rows
from broadgauge.report.terminal_step_parts import print_step_parts
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.results.traced_cases import traced_case, traced_cases, untraced_cases
from broadgauge.specs.traced_steps import TracedCollective, TracedSteps, TracedStraggler
from broadgauge.specs.units import show_time
from broadgauge.specs.workload import TrainWorkload
from broadgauge.traces.explanation import StepPart

STEPS_S = (0.5, 0.3, 0.4, 0.9)
"""Of the traced trials; the median of four is the second shortest."""
MEDIAN_S = 0.4


def traced(step_s: float, *, busy: float | None = None) -> TracedSteps:
    parts = dict.fromkeys(PART_WORDS, 0.0)
    parts |= {"compute": step_s / 4, "exposed_communication": step_s / 2, "other": step_s / 4}
    return TracedSteps(
        traces_count=2,
        steps_count=2,
        step_time_s=step_s,
        tracing_overhead_ratio=1.25,
        parts_s=parts,
        overlapped_communication_s=0.01,
        gpu_busy_ratio=busy,
        compute_ratio=0.25,
        is_all_ranks=True,
        stragglers=(TracedStraggler(rank=3, delay_s=0.041, cause="data_wait"),),
    )


def with_traces(run: RunSummary, told: Mapping[int, TracedSteps]) -> RunSummary:
    """The sample run, with what the traces of the slow network's trials say, by their place."""

    def of_case(summary: CaseSummary) -> CaseSummary:
        is_slow_job = summary.case.plain_network_name == "pod-like"
        if not (is_slow_job and isinstance(summary.case.workload, TrainWorkload)):
            return summary
        records = tuple(
            record.model_copy(update={"traced": told.get(place)})
            for place, record in enumerate(summary.records)
        )
        return replace(summary, records=records)

    return replace(run, cases=tuple(map(of_case, run.cases)))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> RunSummary:
    return sample_run(tmp_path_factory.mktemp("run"), Options(has_failure=False))


@pytest.fixture(scope="module")
def run(plain: RunSummary) -> RunSummary:
    return with_traces(plain, {place: traced(step_s) for place, step_s in enumerate(STEPS_S)})


def printed(run: RunSummary, width: int = 200) -> str:
    stream = io.StringIO()
    print_step_parts(run, Console(file=stream, width=width))
    return stream.getvalue()


def test_parts_have_the_names_that_explanations_give_them() -> None:
    assert list(PART_WORDS) == [str(part) for part in StepPart]


def test_one_trial_speaks_for_a_case_and_its_parts_add_up(run: RunSummary) -> None:
    (case,) = traced_cases(run)
    assert (case.step_time_s, case.num_trials) == (MEDIAN_S, 4)
    assert sum(part or 0.0 for part in case.traced.parts_s.values()) == pytest.approx(MEDIAN_S)
    assert (case.shortest_step_s, case.longest_step_s) == (0.3, 0.9)


def test_the_terminal_has_a_row_a_traced_case(run: RunSummary) -> None:
    head, rows = part_rows(run)
    assert head == ("", "traced step", "compute", "exposed", "other", "hidden", "overhead")
    (row,) = rows
    assert row[1:] == (
        "400 ms\n4 trials: 300 ms to 900 ms",
        "100 ms\n25 %",
        "200 ms\n50 %",
        "100 ms\n25 %",
        "10 ms",
        "1.25×",
    )
    words = " ".join(printed(run).split())
    assert "others wait 41 ms a step for rank 3 (waiting for data)" in words
    assert "exposed" in " ".join(printed(run, width=40).split())


def test_nothing_is_said_where_nothing_was_traced(plain: RunSummary) -> None:
    assert printed(plain) == ""
    assert traced_chart(plain, ()) is None
    assert "Where a step" not in render(analysed(plain))


def test_the_page_has_the_table_and_a_stacked_bar(run: RunSummary) -> None:
    page = render(analysed(run))
    assert page.count("Where a step&#x27;s time goes") == 2
    spec = traced_chart(run, traced_cases(run))
    assert spec is not None
    data: Any = spec["data"]
    rows = data["values"]
    assert [row["part"] for row in rows] == ["compute", "exposed communication", "other"]
    assert [row["start"] for row in rows[1:]] == [row["end"] for row in rows[:-1]]
    assert rows[-1]["end"] == pytest.approx(MEDIAN_S)
    assert len(json.dumps(spec)) < 10_000


def test_why_a_waiting_gpu_reads_as_busy_is_said_where_it_was_sampled(
    plain: RunSummary, tmp_path: Path
) -> None:
    on_gpus = sample_run(tmp_path, Options(has_failure=False, has_gpus=True))
    run = with_traces(on_gpus, {0: traced(0.4, busy=0.98)})
    (summary,) = [case.summary for case in traced_cases(run)]
    gpus = tuple(
        gpu.model_copy(update={"utilization_ratio": 1.0}) for gpu in summary.records[0].gpus
    )
    assert gpus
    records = (summary.records[0].model_copy(update={"gpus": gpus}), *summary.records[1:])
    sampled = replace(
        run,
        cases=tuple(replace(c, records=records) if c is summary else c for c in run.cases),
    )
    case = traced_case(next(c for c in sampled.cases if c.records == records))
    assert case is not None
    assert case.utilization_ratio == 1
    words = " ".join(printed(sampled).split())
    assert re.search(r"GPU busy +NVML", printed(sampled))
    assert BUSY in words
    assert BUSY not in " ".join(printed(run).split())


def test_a_case_without_a_trace_says_why(plain: RunSummary) -> None:
    problem = "rank 0: the script's own PyTorch profiler is used, and two can't run at once"
    run = with_traces(plain, {0: TracedSteps(problem=problem), 1: TracedSteps(problem="other")})
    (case,) = untraced_cases(run)
    assert case.problem == problem
    assert f"was not traced: {problem}" in " ".join(printed(run).split())
    missing = with_traces(plain, {0: TracedSteps(problem=problem), 1: traced(0.4)})
    assert "1 of 2 trials left no trace" in " ".join(printed(missing).split())


def test_what_the_network_costs_stands_beside_the_trace(run: RunSummary) -> None:
    (case,) = traced_cases(run)
    cost_s = case.record.metrics["network_cost_s"]
    assert cost_s is not None
    words = " ".join(printed(run).split())
    assert f"the network costs {show_time(cost_s)} of a step by the same trial's steps" in words
    assert "by the trace 200 ms of communication is exposed and 0 ns waiting" in words
    assert "with communication off" in render(analysed(run))


def test_collectives_are_held_against_the_probe_of_the_same_network(plain: RunSummary) -> None:
    probed = next(
        case.collectives
        for case in plain.cases
        if case.case.plain_network_name == "pod-like" and case.collectives
    )
    row = max((row for row in probed if row.op == "all_reduce"), key=lambda row: row.size_bytes)
    one = TracedCollective(
        kind="all_reduce",
        group="0",
        ranks_count=2,
        message_bytes=row.size_bytes,
        calls_per_step_count=3,
        time_s=0.2,
        transfer_s=0.1,
        exposed_s=0.05,
        busbw_gbyte_per_s=row.busbw_gbyte_per_s.value / 2,
    )
    gloo = one.model_copy(update={"message_bytes": None, "busbw_gbyte_per_s": None})
    told = traced(0.4).model_copy(update={"collectives": (one, gloo)})
    run = with_traces(plain, {0: told})
    _, rows = collective_rows(run)
    assert [cells[-1] for cells in rows] == ["50 %", "unknown"]
    page = render(analysed(run))
    assert "Of the probe: share of the busbw" in page
