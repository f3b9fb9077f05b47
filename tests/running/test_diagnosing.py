"""What would a doctor say of a finished run: its logs, its records, its counters?"""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.engine.making import a_plan, make_folder, run_in
from tests.platforms.planted_nccl import MEMLOCK, Network, nccl_log

from broadgauge.results.folder.reading import read_run
from broadgauge.running.diagnosing import DiagnosedFinding, RunDiagnosis, diagnose_run
from broadgauge.specs.errors import RunFolderError
from broadgauge.specs.records.record import NodeUse


def a_run(folder: Path) -> Path:
    """Two launches of two cases, b0.l0 and b0.l1."""
    plan = a_plan(cluster={"shapes": ["1x1", "2x1"]}, launches=1)
    with make_folder(folder, plan) as store:
        run_in(store)
        return store.path


def plant(run: Path, launch: str, *texts: str, life: str = "") -> None:
    for rank, text in enumerate(texts):
        (run / "logs" / f"{launch}{life}.rank{rank}.nccl.log").write_text(text)
        (run / "logs" / f"{launch}{life}.rank{rank}.log").write_text("step 1\n")


def found(diagnosis: RunDiagnosis, words: str) -> DiagnosedFinding:
    (one,) = (
        each for each in diagnosis.findings if any(words in line for line in each.finding.evidence)
    )
    return one


def test_a_run_without_logs_has_its_cases_and_nothing_of_nccl(tmp_path: Path) -> None:
    path = a_run(tmp_path)
    diagnosis = diagnose_run(path)
    assert diagnosis.folder == path.resolve()
    assert diagnosis.experiment_name
    assert diagnosis.cases
    assert {case.overview for case in diagnosis.cases} == {None}
    assert {case.paths for case in diagnosis.cases} == {None}


def test_every_case_has_what_nccl_did_in_its_last_launch(tmp_path: Path) -> None:
    path = a_run(tmp_path)
    plant(path, "b0.l1", nccl_log("sockets", 0), nccl_log("sockets", 1))
    plant(path, "b0.l1", nccl_log("roce", 0), nccl_log("roce", 1), life="r1")
    diagnosed = [case for case in diagnose_run(path).cases if case.launches]
    assert diagnosed
    for case in diagnosed:
        assert case.launches == ("b0.l1", "b0.l1r1")
        assert case.overview is not None
        assert [told.value for told in case.overview.networks] == ["IB"]
        assert case.paths is not None
        assert case.paths.cells[0][1].words == "GDRDMA"


def test_a_finding_of_two_launches_is_one_with_its_ranks(tmp_path: Path) -> None:
    path = a_run(tmp_path)
    for launch in ("b0.l0", "b0.l1"):
        plant(path, launch, nccl_log("roce", 0), nccl_log("roce", 1, MEMLOCK))
    one = found(diagnose_run(path), MEMLOCK)
    assert one.launches == ("b0.l0", "b0.l1")
    assert one.ranks == (1,)
    assert len(one.cases) >= 2
    assert one.trials == ()
    assert one.finding.evidence[0].startswith("logs/b0.l0.rank1.nccl.log:")
    assert one.finding.cause
    assert one.finding.fix


def test_what_the_ranks_printed_is_read_too(tmp_path: Path) -> None:
    path = a_run(tmp_path)
    plant(path, "b0.l0", nccl_log("roce", 0))
    (path / "logs" / "b0.l0.rank0.log").write_text("step 1\n" * 500)
    overview = next(case.overview for case in diagnose_run(path).cases if case.launches)
    assert overview is not None
    assert overview.num_lines > 500 > overview.num_nccl_lines


def changed(path: Path, **changes: Any) -> None:
    """The first record, as if it had been written so."""
    first, *others = (path / "records.jsonl").read_text().splitlines()
    record = json.loads(first) | changes
    (path / "records.jsonl").write_text("\n".join([json.dumps(record), *others, ""]))


def test_the_findings_of_records_are_there_the_worst_first(tmp_path: Path) -> None:
    path = a_run(tmp_path)
    said = [
        {"rule": f"r{n}", "severity": severity, "symptom": f"{n} % of it"}
        for n, severity in enumerate(("info", "error", "warning"))
    ]
    changed(path, findings=said)
    diagnosis = diagnose_run(path)
    assert [each.finding.rule for each in diagnosis.findings] == ["r1", "r2", "r0"]
    assert {each.trials for each in diagnosis.findings} == {("b0.l0.t0",)}
    assert {each.cases for each in diagnosis.findings} == {(diagnosis.cases[0].label,)}


@pytest.mark.parametrize("status", ["ok", "failed"])
def test_the_counters_of_a_failed_trial_are_judged_here(tmp_path: Path, status: str) -> None:
    """Those of a good one were when it was stored."""
    path = a_run(tmp_path)
    run = read_run(path)
    two_nodes = next(case for case in run.plan.cases if case.link is not None)
    node = NodeUse(
        node=1,
        elapsed_s=1.0,
        tx_bytes=10**9,
        rx_bytes=10**9,
        drops_count=0,
        retransmits_count=90_000,
        cores_count=1,
        cpu_user_s=0.1,
        cpu_system_s=0.1,
        cpu_softirq_s=0.0,
        cpu_busy_ratio=0.2,
    )
    nodes = [node.model_dump(mode="json")]
    changed(path, case_key=two_nodes.key, status=status, nodes=nodes, findings=[])
    rules = [each.finding.rule for each in diagnose_run(path).findings]
    assert rules == (["trials-failed", "retransmits"] if status == "failed" else [])


def failing(run: Path, *errors: dict[str, Any], **changes: Any) -> RunDiagnosis:
    """The run, as if its first trials had failed so."""
    lines = (run / "records.jsonl").read_text().splitlines()
    assert len(lines) >= len(errors)
    for number, error in enumerate(errors):
        stored = json.loads(lines[number]) | {"status": "failed", "error": error} | changes
        lines[number] = json.dumps(stored)
    (run / "records.jsonl").write_text("\n".join([*lines, ""]))
    return diagnose_run(run)


def test_a_lost_host_is_an_error_that_names_it(tmp_path: Path) -> None:
    message = "b0.l0: the agent on node-2: it closed the connection"
    lost = {"kind": "launcher_lost", "message": message}
    (one,) = failing(a_run(tmp_path), lost).findings
    assert one.finding.rule == "trials-failed"
    assert one.finding.severity.value == "error"
    said = "the agent on node-2: it closed the connection"
    assert one.finding.symptom == f"trials failed: {said}"
    assert one.finding.evidence == (f"b0.l0.t0: {said}",)
    assert one.trials == ("b0.l0.t0",)


def test_trials_that_failed_for_one_reason_are_one_with_every_host_and_rank(tmp_path: Path) -> None:
    hosts = [
        {"kind": "crashed", "rank": n, "message": f"b0.l{n} did not come up: node-{n} is gone"}
        for n in (0, 1)
    ]
    (one,) = failing(a_run(tmp_path), *hosts).findings
    assert one.finding.symptom == "trials failed: the launch did not come up: node-0 is gone"
    assert [line.partition(": ")[2] for line in one.finding.evidence] == [
        f"rank {n}: the launch did not come up: node-{n} is gone" for n in (0, 1)
    ]
    assert len(one.trials) == 2


def test_other_reasons_and_time_outs_are_findings_of_their_own(tmp_path: Path) -> None:
    path = a_run(tmp_path)
    stuck = {"kind": "hung", "phase": "measure", "message": "rank 3 is silent", "rank": 3}
    failing(path, stuck, status="timeout")
    lines = (path / "records.jsonl").read_text().splitlines()
    crashed = {"kind": "crashed", "message": "rank 1 ended with exit code 7", "rank": 1}
    lines[1] = json.dumps(json.loads(lines[1]) | {"status": "failed", "error": crashed})
    (path / "records.jsonl").write_text("\n".join([*lines, ""]))
    assert [each.finding.symptom for each in diagnose_run(path).findings] == [
        "trials timed out: rank 3 is silent",
        "trials failed: rank 1 ended with exit code 7",
    ]


def test_what_a_failed_trials_own_finding_says_is_not_said_twice(tmp_path: Path) -> None:
    symptom = "network fabric is meant as RoCE, and NCCL sent over TCP sockets"
    finding = {"rule": "transport-fell-back", "severity": "error", "symptom": symptom}
    error = {"kind": "refused", "message": f"{symptom} (no adapter)"}
    (one,) = failing(a_run(tmp_path), error, findings=[finding]).findings
    assert one.finding.rule == "transport-fell-back"


def a_gpu_run(folder: Path, network: dict[str, Any], busbw: float) -> Path:
    """One case on two hosts, whose largest all_reduce had this busbw."""
    plan = a_plan(
        gpus=8,
        platform="hosts",
        hosts=["node0", "node1"],
        cluster={"shapes": ["2x1"]},
        networks=[{"name": "fabric", "found": {"interface": "eth0", **network}}],
        workloads=[{"kind": "collectives", "ops": ["all_reduce"], "sizes": ["64 MiB", "4 GiB"]}],
        launches=1,
    )
    with make_folder(folder, plan) as store:
        run_in(store)
        path = store.path
    rows = json.loads((path / "records.jsonl").read_text())["collectives"]
    changed(path, collectives=[{**row, "busbw_gbyte_per_s": busbw} for row in rows])
    return path


FABRIC = {"transport": "roce", "nominal_gbps": "400 Gbit/s"}


@pytest.mark.parametrize(
    ("busbw", "log", "rule"),
    [
        (47.0, "roce", "busbw-as-expected"),
        (3.4, "sockets", "busbw-below-expected"),
        (9.0, "roce-staged", "busbw-below-expected"),
    ],
)
def test_a_cases_bandwidth_is_held_against_what_it_should_be(
    tmp_path: Path, busbw: float, log: Network, rule: str
) -> None:
    path = a_gpu_run(tmp_path, FABRIC, busbw)
    plant(path, "b0.l0", nccl_log(log, 0), nccl_log(log, 1))
    (one,) = (e for e in diagnose_run(path).findings if e.finding.rule.startswith("busbw"))
    assert one.finding.rule == rule
    assert "400 Gbit/s RoCE with GPUDirect RDMA" in one.finding.symptom
    assert (one.cases, one.trials) == (("collectives 2x1 fabric",), ("b0.l0.t0",))


def test_what_a_case_asks_for_is_no_finding(tmp_path: Path) -> None:
    for folder, transport in (("any", {}), ("tcp", {"transport": "tcp"})):
        (tmp_path / folder).mkdir()
        path = a_gpu_run(tmp_path / folder, transport, 3.4)
        texts = [nccl_log("sockets", rank) for rank in (0, 1)]
        asked = "node0:100:100 [0] NCCL INFO NCCL_IB_HCA set by environment to mlx5_0\n"
        plant(path, "b0.l0", asked + texts[0], texts[1])
        rules = {each.finding.rule for each in diagnose_run(path).findings}
        assert ("rdma-not-used" in rules) == (folder == "any")


@pytest.mark.parametrize("transport", [{}, {"transport": "tcp"}])
def test_variables_that_users_set_are_judged_and_not_ours(
    tmp_path: Path, transport: dict[str, Any]
) -> None:
    path = a_gpu_run(tmp_path, transport, 3.4)
    for file in (path / "environments").iterdir():
        stored = json.loads(file.read_text())
        variables = {"NCCL_IB_HBA": "mlx5", "NCCL_NET": "Socket", "NCCL_IB_DISABLE": "1"}
        file.write_text(json.dumps(stored | {"platform": "hosts", "variables": variables}))
    found = [each.finding for each in diagnose_run(path).findings]
    (misspelt,) = (finding for finding in found if "NCCL_IB_HBA" in finding.symptom)
    assert "NCCL_IB_HCA" in (misspelt.fix or "")
    assert any("NCCL_IB_DISABLE" in each.symptom for each in found) == (not transport)


def test_logs_of_what_is_no_launch_of_the_plan_are_left_alone(tmp_path: Path) -> None:
    path = a_run(tmp_path)
    plant(path, "b7.l9", nccl_log("roce", 0))
    (path / "logs" / "b0.l0.supervisor.log").write_text(nccl_log("roce", 0))
    assert all(not case.launches for case in diagnose_run(path).cases)


def test_a_log_that_can_not_be_read_is_noted_and_the_others_are_read(tmp_path: Path) -> None:
    path = a_run(tmp_path)
    plant(path, "b0.l0", nccl_log("roce", 0), nccl_log("roce", 1))
    (path / "logs" / "b0.l0.rank0.log").write_bytes(b"PK\x03\x04 something")
    diagnosis = diagnose_run(path)
    assert any("is a zip archive" in note for note in diagnosis.notes)
    assert any(case.overview is not None for case in diagnosis.cases)


def test_no_run_is_one_message(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="does not exist"):
        diagnose_run(tmp_path / "nothing")
