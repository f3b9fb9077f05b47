"""Do a trial's traced steps add up in its record, and does it say why where there are none?"""

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.merging.outcomes import make_case, outcome, steps, summary
from tests.traces import jobs

from broadgauge.merging.merge import MergedTrial, merge
from broadgauge.messages.codec import encode
from broadgauge.messages.rank import Artifact, TraceProblem
from broadgauge.messages.vocabulary import StepMode
from broadgauge.specs.record import Status
from broadgauge.specs.traced_steps import TIMELINE_SERIES, TracedSteps
from broadgauge.specs.tracing import Tracing
from broadgauge.specs.workload import TrainWorkload
from broadgauge.traces.timeline import timeline_from_rows

TRACED = TrainWorkload(kind="train", trace=Tracing())
STEP_S = 0.004
SAID = [
    [
        steps("on/0", [STEP_S] * 4, [2.0] * 4),
        replace(steps("traced/0", [9.0] * 2, [2.0] * 2), mode=StepMode.TRACED),
        summary(),
    ]
] * 2


def artifact(path: Path) -> Artifact:
    content = path.read_bytes() if path.is_file() else b""
    return Artifact(
        trial_id="t",
        name=path.name,
        path=str(path),
        size_bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        kind="trace",
    )


def merged(
    paths: list[Path], *, workload: TrainWorkload = TRACED, problem: str | None = None
) -> MergedTrial:
    said = outcome(SAID)
    told = [encode(artifact(path)) for path in paths]
    if problem is not None:
        told.append(encode(TraceProblem(trial_id="t", message=problem)))
    first, *others = said.messages
    return merge(
        make_case(workload), replace(said, messages=((*first, *told), *others)), peak_flops=None
    )


def traced(trial: MergedTrial) -> TracedSteps:
    assert trial.measurement.traced is not None
    return trial.measurement.traced


def test_the_parts_add_up_to_the_traced_step(tmp_path: Path) -> None:
    found = traced(merged(jobs.ddp(late_us=(0, 300)).write(tmp_path)))
    assert found.problem is None
    assert found.step_time_s is not None
    assert sum(part or 0.0 for part in found.parts_s.values()) == pytest.approx(found.step_time_s)
    for rank in found.ranks:
        parts = sum(part or 0.0 for part in rank.parts_s.values())
        assert parts == pytest.approx(rank.step_time_s)
    assert found.tracing_overhead_ratio == pytest.approx(found.step_time_s / STEP_S)
    assert found.is_all_ranks
    assert [late.rank for late in found.stragglers] == [1]
    assert found.collectives[0].message_bytes == 2 << 20
    exposed = found.parts_s["exposed_communication"]
    assert found.exposed_by_network_s["between_nodes"] == pytest.approx(exposed)
    assert found.gpu_busy_ratio is not None
    assert found.compute_ratio is not None
    assert found.compute_ratio < found.gpu_busy_ratio <= 1


def test_traced_steps_are_in_no_other_figure(tmp_path: Path) -> None:
    with_them = merged(jobs.ddp().write(tmp_path))
    without = merged([], workload=TRACED.model_copy(update={"trace": None}))
    assert without.measurement.traced is None
    assert with_them.measurement.metrics == without.measurement.metrics
    series = dict(with_them.series)
    rows = np.array(series.pop(TIMELINE_SERIES))
    assert series == without.series
    assert timeline_from_rows(rows) is not None


def test_of_one_rank_waiting_is_unknown(tmp_path: Path) -> None:
    found = traced(merged(jobs.ddp().write(tmp_path)[:1], problem="rank 1: the profiler failed"))
    assert found.parts_s["straggler_wait"] is None
    assert not found.is_all_ranks
    assert "rank 1: the profiler failed" in found.notes


def test_why_there_is_no_trace_is_said_and_the_figures_stand(tmp_path: Path) -> None:
    cut = tmp_path / "rank0.trace.json"
    cut.write_text('{"traceEvents": [{"ph": "X"')
    cases = {
        "no rank left a trace": merged([]),
        "rank 0: it ended": merged([], problem="rank 0: it ended"),
        "stayed on the machines of their ranks": merged([tmp_path / "elsewhere.json"]),
        "cut off": merged([cut]),
    }
    for words, trial in cases.items():
        assert words in str(traced(trial).problem)
        assert trial.error is None
        assert trial.measurement.metrics["step_time_s"] == pytest.approx(STEP_S)


def test_a_failed_trial_has_none(tmp_path: Path) -> None:
    said = replace(outcome(SAID), status=Status.FAILED)
    assert merge(make_case(TRACED), said, None).measurement.traced is None
