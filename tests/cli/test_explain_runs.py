"""Proves `broadgauge explain RUN`: a run's traces are read again by its name, case by case."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from tests.engine.making import COLLECTIVES, a_plan, make_folder
from tests.traces import jobs

from broadgauge.cli.main import main
from broadgauge.messages.rank import Artifact
from broadgauge.results.folder.run_folder import RunFolder
from broadgauge.specs.errors import ExitCode
from broadgauge.specs.op_rows import CollectiveRow
from broadgauge.specs.record import Record, Status
from broadgauge.specs.traced_steps import TracedSteps

TRAIN = {"kind": "train", "trace": {"steps": 3}}
PROBED_GBYTE_PER_S = 4.0
ROW = CollectiveRow(
    op="all_reduce",
    dtype="float32",
    size_bytes=2 << 20,
    iterations=10,
    time_s=0.001,
    time_min_s=0.001,
    time_median_s=0.001,
    time_max_s=0.001,
    algbw_gbyte_per_s=PROBED_GBYTE_PER_S,
    busbw_gbyte_per_s=PROBED_GBYTE_PER_S,
    wire_bytes=1.0,
    amplification_ratio=1.0,
    link_rate_gbps=1.0,
    is_correct=True,
)


def keep(
    folder: RunFolder, *, late_us: int, metrics: dict[str, float | None], traced: bool = True
) -> None:
    """A trial of each case; rank 1 of the second is late by so much, of the third by twice that."""
    trials = {
        trial.case_key: (launch.launch_id, trial)
        for launch in folder.plan.launches
        for trial in launch.trials
    }
    for number, case in enumerate(folder.plan.cases):
        launch_id, trial = trials[case.key]
        is_traced = traced and case.workload.tracing is not None
        job = jobs.ddp(late_us=(0, late_us * number))
        left = []
        for path in job.write(folder.log_folder, is_zipped=True) if is_traced else ():
            content = path.read_bytes()
            digest = hashlib.sha256(content).hexdigest()
            left.append(
                Artifact(
                    trial_id=trial.trial_id,
                    name=path.name,
                    path=str(path),
                    size_bytes=len(content),
                    sha256=digest,
                    kind="trace",
                )
            )
        record = Record(
            record_id=trial.trial_id,
            case_key=trial.case_key,
            workload=case.workload.name,
            network=case.network_name,
            shape=case.shape,
            launch_id=launch_id,
            block=0,
            trial=0,
            position=number,
            started_unix_s=0.0,
            ended_unix_s=1.0,
            status=Status.OK,
            metrics=metrics,
            traced=TracedSteps(step_time_s=1.0) if is_traced else None,
            collectives=(ROW,) if case.workload.kind == "collectives" else (),
        )
        folder.append(record, {}, left)


def made(
    path: Path,
    *,
    late_us: int = 300,
    traced: bool = True,
    metrics: dict[str, float | None] | None = None,
    **changes: Any,
) -> Path:
    path.mkdir()
    folder = make_folder(path, a_plan(**{"workloads": [TRAIN], **changes}, launches=1))
    keep(folder, late_us=late_us, traced=traced, metrics=metrics or {})
    folder.close()
    return folder.path


def printed(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main(["explain", *map(str, arguments)]) == ExitCode.OK
    return capsys.readouterr().out


def test_each_traced_case_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    run = made(tmp_path / "a")
    cases = json.loads(printed(capsys, run, "--json"))["cases"]
    assert len(cases) > 1
    for case in cases:
        assert sum(case["parts_s"].values()) == pytest.approx(case["step_time_s"])
    assert cases[0]["parts_s"]["straggler_wait"] == 0
    assert cases[1]["parts_s"]["straggler_wait"] > 0
    words = printed(capsys, run)
    assert all(f"{case['case']}, trial {case['trial']}" in words for case in cases)


def test_two_runs_are_set_side_by_side(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    slow, quick = made(tmp_path / "a"), made(tmp_path / "b", late_us=0)
    cases = json.loads(printed(capsys, slow, "--against", quick, "--json"))["cases"]
    assert [case["step_ratio"] < 1 for case in cases[:2]] == [False, True]


def test_a_run_without_traces_says_how_to_have_some(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run = made(tmp_path / "a", traced=False)
    assert main(["explain", str(run)]) == ExitCode.BAD_INPUT
    said = capsys.readouterr().err
    assert "is a run folder without traces" in said
    assert "trace: {steps: 2}" in said


def test_a_track_is_of_one_case(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    run = made(tmp_path / "a")
    assert main(["explain", str(run), "--perfetto", str(tmp_path / "p.json")]) == 2
    assert "traced cases" in capsys.readouterr().err
    assert not (tmp_path / "p.json").exists()


def test_a_page_has_a_timeline_a_case(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    run, page = made(tmp_path / "a"), tmp_path / "page.html"
    cases = json.loads(printed(capsys, run, "--json", "--html", page))["cases"]
    assert page.read_text().count('<figure class="timeline"') == len(cases)
    assert all(case["case"] in page.read_text() for case in cases)
    printed(capsys, run, made(tmp_path / "b", late_us=0), "--html", page)
    assert page.read_text().count('<figure class="timeline"') == 2 * len(cases)


def test_a_page_replaces_no_trace(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = jobs.ddp().write(tmp_path)[0]
    before = path.read_bytes()
    assert main(["explain", str(path), "--html", str(path)]) == ExitCode.BAD_INPUT
    assert "is the trace itself" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_a_trials_step_without_communication_stands_beside(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    metrics = {"step_time_s": 0.5, "step_without_communication_s": 0.3, "network_cost_s": 0.2}
    run = made(tmp_path / "a", metrics=metrics)
    (case, *_) = json.loads(printed(capsys, run, "--json"))["cases"]
    assert case["communication_off"]["network_cost_s"] == pytest.approx(0.2)
    words = " ".join(printed(capsys, run).split())
    assert "300 ms with communication off, so the network costs 200 ms. By the trace " in words
    without = json.loads(printed(capsys, made(tmp_path / "b"), "--json"))["cases"]
    assert {case["communication_off"] for case in without} == {None}


def of_cases(text: str) -> dict[str, dict[str, Any]]:
    return {case["case"]: case for case in json.loads(text)["cases"]}


def test_the_own_runs_collectives_say_what_the_path_reached(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run = made(tmp_path / "a", workloads=[TRAIN, COLLECTIVES])
    cases = of_cases(printed(capsys, run, "--json"))
    (slow,) = (case for name, case in cases.items() if "slow" in name)
    (one,) = slow["collectives"]
    assert one["message_bytes"] == 2 << 20
    assert one["probe_busbw_gbyte_per_s"] == PROBED_GBYTE_PER_S
    assert one["probe_share_ratio"] == pytest.approx(one["busbw_gbyte_per_s"] / PROBED_GBYTE_PER_S)
    assert "collectives" in slow["probe"]
    (alone,) = (case for name, case in cases.items() if "1x1" in name)
    assert (alone["probe"], alone["collectives"][0]["probe_share_ratio"]) == (None, None)
    words = " ".join(printed(capsys, run).split())
    assert "of the probe" in words


def test_a_reference_says_it_where_the_run_has_no_collectives(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run = made(tmp_path / "a")
    other = made(tmp_path / "b", workloads=[COLLECTIVES])
    assert "of the probe" not in printed(capsys, run)
    cases = of_cases(printed(capsys, run, "--json", "--reference", other))
    (slow,) = (case for name, case in cases.items() if "slow" in name)
    assert slow["collectives"][0]["probe_busbw_gbyte_per_s"] == PROBED_GBYTE_PER_S
    (alone,) = (case for name, case in cases.items() if "1x1" in name)
    assert "has no collectives of 1 ranks" in " ".join(alone["notes"])


def test_a_reference_that_can_not_be_told_is_said(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    paths = jobs.ddp().write(tmp_path)
    other = made(tmp_path / "b", workloads=[COLLECTIVES])
    words = " ".join(printed(capsys, *paths, "--reference", other).split())
    assert "collectives on 2 networks and shapes" in words
    one = made(tmp_path / "c", workloads=[COLLECTIVES], networks=[{"name": "slow"}])
    assert "of the probe" in printed(capsys, *paths, "--reference", one)
    assert main(["explain", *map(str, paths), "--reference", str(tmp_path / "none")]) != 0
    assert "none" in capsys.readouterr().err
