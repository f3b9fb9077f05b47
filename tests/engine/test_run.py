"""One record for each planned trial, whatever happens: failures, launches, platforms, signals."""

import signal
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from tests.engine.fake_platform import (
    Failure,
    FakeClock,
    FakePlatform,
    Script,
    an_environment,
    services,
)
from tests.engine.making import COMMAND, TRAIN, a_plan, make_folder, run_in, trial_ids

from broadgauge.analysis.analyse import analysed
from broadgauge.engine.events import Event, LaunchEnded, Noted, RecordWritten, RunEnded, RunStarted
from broadgauge.engine.interrupts import Interrupt
from broadgauge.engine.ports import Merged
from broadgauge.engine.run import run
from broadgauge.engine.trial import TrialPlace, Unreadable, measured_record
from broadgauge.report.export.run_tables import table_of
from broadgauge.results.folder.run_folder import RunFolder
from broadgauge.results.summary import summarise_stored
from broadgauge.specs.case import Case
from broadgauge.specs.errors import LaunchError, PlatformError, RunFolderError
from broadgauge.specs.launching import LaunchRequest, TrialOutcome
from broadgauge.specs.records.file_access_row import FileAccessRow
from broadgauge.specs.records.op_rows import NcclTestsRow
from broadgauge.specs.records.record import (
    Environment,
    ErrorKind,
    Measurement,
    NodeUse,
    Phase,
    Record,
    Status,
    TrialError,
)
from broadgauge.specs.storages.storage import Storage


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return make_folder(tmp_path, a_plan())


def ids(records: list[Record] | tuple[Record, ...]) -> list[str]:
    return [record.record_id for record in records]


def test_a_run_leaves_one_record_for_each_trial_in_the_planned_order(folder: RunFolder) -> None:
    events: list[Event] = []
    result, platform = run_in(folder, observer=events.append)
    assert ids(tuple(folder.records)) == trial_ids(folder.plan) == platform.trials
    assert (result.num_ok, result.exit_code) == (len(folder.records), 0)
    assert platform.num_alive == 0
    assert platform.is_closed
    assert {record.status for record in folder.records} == {Status.OK}
    assert isinstance(events[0], RunStarted)
    assert isinstance(events[-1], RunEnded)
    written = [event for event in events if isinstance(event, RecordWritten)]
    assert [event.num_finished for event in written] == list(range(1, len(folder.records) + 1))
    assert written[-1].remaining_s == pytest.approx(0, abs=1e-6)


def test_what_the_ranks_measured_is_in_the_record(folder: RunFolder) -> None:
    run_in(folder)
    record = next(r for r in folder.records if (r.workload, r.network) == ("train", "slow"))
    gradient_bytes = 4 * folder.plan.case(record.case_key).workload.model.parameters  # type: ignore[union-attr]
    assert record.metrics["step_without_communication_s"] == pytest.approx(0.05)
    assert record.metrics["wire_bytes"] == pytest.approx(1.05 * gradient_bytes, rel=1e-4)
    assert set(record.series) == {"step_time_s", "step_without_communication_s", "loss"}
    assert record.environment in folder.environments


def test_positions_count_within_the_block(folder: RunFolder) -> None:
    run_in(folder)
    for block in (0, 1):
        positions = [record.position for record in folder.records if record.block == block]
        assert positions == list(range(len(positions)))


@pytest.mark.parametrize("kind", list(ErrorKind))
def test_a_trial_that_fails_is_one_record_and_the_others_have_another_launch(
    folder: RunFolder, kind: ErrorKind
) -> None:
    failed = "b0.l1.t1"
    events: list[Event] = []
    script = Script(failures={failed: Failure(kind=kind, num_blocks=1)})
    result, platform = run_in(folder, script, observer=events.append)
    if kind is ErrorKind.REFUSED:  # what would be refused again is skipped, ahead of the others
        assert set(ids(tuple(folder.records))) == set(trial_ids(folder.plan))
    else:
        assert ids(tuple(folder.records)) == trial_ids(folder.plan)
    record = next(record for record in folder.records if record.record_id == failed)
    assert record.status is (Status.TIMEOUT if kind is ErrorKind.HUNG else Status.FAILED)
    assert record.error is not None
    assert record.error.kind is kind
    assert record.error.last_lines[-1] == "RuntimeError: scripted"
    launches = Counter(r.launch_id for r in folder.records if r.launch_id.startswith("b0.l1"))
    assert launches == {"b0.l1": 2, "b0.l1r1": 2}
    assert (result.num_failed, result.exit_code, platform.num_alive) == (1, 3, 0)
    reasons = [event.reason for event in events if isinstance(event, LaunchEnded)]
    assert "b0.l1.t1 failed" in reasons


def test_what_was_measured_before_a_failure_is_kept(folder: RunFolder) -> None:
    run_in(folder, Script(failures={"b0.l1.t0": Failure(kind=ErrorKind.CRASHED, num_blocks=2)}))
    record = next(record for record in folder.records if record.record_id == "b0.l1.t0")
    assert record.status is Status.FAILED
    assert record.metrics["step_time_s"] is not None
    assert "step_time_s" in record.series


def test_every_trial_failing_ends_too(folder: RunFolder) -> None:
    everything = {trial: Failure(kind=ErrorKind.KILLED) for trial in trial_ids(folder.plan)}
    result, platform = run_in(folder, Script(failures=everything))
    assert ids(tuple(folder.records)) == trial_ids(folder.plan) == platform.trials
    assert result.num_failed == len(everything)


def test_ranks_that_end_after_a_good_trial_are_started_again(folder: RunFolder) -> None:
    result, _ = run_in(folder, Script(dying_after=frozenset({"b0.l1.t1"})))
    assert result.num_failed == 0
    assert "b0.l1r1" in {record.launch_id for record in folder.records}


def test_a_launch_that_does_not_come_up_fails_its_first_trial_only(folder: RunFolder) -> None:
    known = TrialError(kind=ErrorKind.HUNG, message="rank 1 silent", phase=Phase.RENDEZVOUS, rank=1)
    script = Script(launch_errors={"b0.l1": LaunchError("rank 1 silent", error=known)})
    result, _ = run_in(folder, script)
    records = {record.record_id: record for record in folder.records}
    assert records["b0.l1.t0"].status is Status.TIMEOUT
    assert records["b0.l1.t0"].error == known
    assert records["b0.l1.t0"].ended_unix_s - records["b0.l1.t0"].started_unix_s == 2.0
    assert records["b0.l1.t1"].status is Status.OK
    assert records["b0.l1.t1"].launch_id == "b0.l1r1"
    assert result.num_failed == 1


def test_what_a_lost_launch_says_is_in_the_record(folder: RunFolder) -> None:
    error = LaunchError("b0.l0 did not come up\n  | ImportError: torch", hint="see the log")
    run_in(folder, Script(launch_errors={"b0.l0": error}))
    known = folder.records[0].error
    assert known is not None
    assert known.kind is ErrorKind.NOT_STARTED
    assert known.message == "b0.l0 did not come up (hint: see the log)"
    assert known.last_lines == ("ImportError: torch",)


def test_three_lost_launches_in_a_row_give_up_the_rest_of_that_launch(folder: RunFolder) -> None:
    lost = {f"b0.l1{life}": LaunchError("no veth") for life in ("", "r1", "r2", "r3")}
    result, _ = run_in(folder, Script(launch_errors=lost))
    statuses = [r.status for r in folder.records if r.record_id.startswith("b0.l1.")]
    assert statuses == [Status.FAILED] * 3 + [Status.SKIPPED]
    assert folder.records[-1].status is Status.OK
    skipped = next(record for record in folder.records if record.status is Status.SKIPPED)
    assert skipped.error is not None
    assert skipped.error.message == "given up after 3 launches: no veth"
    assert (result.num_skipped, result.exit_code) == (1, 3)
    assert result.message.endswith(f"{folder.location}: 6 good, 3 failed, 1 skipped"), result
    assert ids(tuple(folder.records)) == trial_ids(folder.plan)


def test_a_platform_that_refuses_ends_the_run_and_what_is_stored_stays(folder: RunFolder) -> None:
    platform = FakePlatform(
        FakeClock(), Script(launch_errors={"b1.l1": PlatformError("no namespaces")})
    )
    with pytest.raises(PlatformError, match="no namespaces"):
        run(folder.plan, platform, folder, services(platform.clock))
    assert len(folder.records) == 5
    assert platform.is_closed
    assert platform.num_alive == 0


def test_ranks_that_talk_nonsense_fail_their_trial_only(folder: RunFolder) -> None:
    platform = FakePlatform(FakeClock())
    known = services(platform.clock)

    def reading(case: Case, outcome: TrialOutcome, peak_flops: float | None) -> Merged:
        if platform.trials == ["b0.l0.t0"]:
            Record.model_validate({"metrics": "nonsense"})
        return known.merger(case, outcome, peak_flops)

    run(folder.plan, platform, folder, replace(known, merger=reading))
    assert [record.status for record in folder.records].count(Status.FAILED) == 1
    assert folder.records[0].error is not None
    assert folder.records[0].error.message.startswith("what the ranks sent can't be read")


def test_commands_have_a_launch_of_their_own(tmp_path: Path) -> None:
    folder = make_folder(tmp_path, a_plan(workloads=[COMMAND, TRAIN], trials_per_launch=2))
    run_in(folder)
    commands = [record for record in folder.records if record.workload == "command"]
    assert len({record.launch_id for record in commands}) == len(commands) == 2 * 3


def test_every_record_of_a_config_has_its_max_batch_len(tmp_path: Path) -> None:
    """Of failed trials, too."""
    config = {"file": "config.json", "module": "a.b", "arguments": ["--max_batch_len", "35000"]}
    by_config = COMMAND | {"name": "by-config", "config": config, "max_batch_len": 35000}
    folder = make_folder(tmp_path, a_plan(workloads=[COMMAND, by_config]))
    failures = {each: Failure(kind=ErrorKind.CRASHED) for each in trial_ids(folder.plan)[:2]}
    run_in(folder, Script(failures=failures))
    found = {(record.workload, record.max_batch_len) for record in folder.records}
    assert found == {("command", None), ("by-config", 35000)}
    table = table_of(analysed(summarise_stored(folder.path)))
    place = [column.name for column in table.columns].index("max_batch_len")
    assert {row[place] for row in table.rows} == {None, 35000}


def interrupting(trial_id: str, times: int = 1) -> Script:
    """SIGTERM at the first measured block of this trial, and again while the ranks are closed."""
    left = [times]

    def on_step(what: str) -> None:
        is_there = what.startswith(trial_id) or (left[0] < times and what.startswith("close"))
        if is_there and left[0]:
            left[0] -= 1
            raise Interrupt(signal.SIGTERM)

    return Script(on_step=on_step)


def test_an_interrupted_trial_leaves_no_record_and_is_run_on_resume(folder: RunFolder) -> None:
    result, platform = run_in(folder, interrupting("b0.l1.t2"))
    assert ids(tuple(folder.records)) == ["b0.l0.t0", "b0.l1.t0", "b0.l1.t1"]
    assert (result.interrupted_by, result.exit_code) == (signal.SIGTERM, 143)
    assert result.message == f"interrupted: 3 of 10 trials are in {folder.location}"
    assert (platform.num_alive, platform.is_closed) == (0, True)
    folder.close()
    with RunFolder.open_for_resume(folder.path) as again:
        result, platform = run_in(again)
        assert ids(tuple(again.records)) == trial_ids(folder.plan)
        assert platform.trials == trial_ids(folder.plan)[3:]
        assert platform.requests[0].launch_id == "b0.l1r1"
        assert result.num_ok == len(trial_ids(folder.plan))
        assert run_in(again)[1].trials == []


def test_a_second_signal_cuts_the_closing_short(folder: RunFolder) -> None:
    result, platform = run_in(folder, interrupting("b0.l1.t2", times=2))
    assert result.interrupted_by == signal.SIGTERM
    assert len(folder.records) == 3
    assert platform.is_closed


def test_a_store_that_fails_ends_the_run_with_the_ranks_closed(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(record: Record, series: object, left: object) -> Record:
        raise RunFolderError("the disk is full")

    monkeypatch.setattr(folder, "append", refuse)
    platform = FakePlatform(FakeClock())
    with pytest.raises(RunFolderError):
        run(folder.plan, platform, folder, services(platform.clock))
    assert (platform.num_alive, platform.is_closed) == (0, True)


def test_a_changed_environment_begins_a_new_block(folder: RunFolder) -> None:
    def environment(request: LaunchRequest) -> Environment:
        is_new = request.launch_id in ("b1.l0", "b1.l1")
        variables = {"NCCL_X": request.cases[0].shape}
        return an_environment(torch="2.12.0" if is_new else "2.11.0", variables=variables)

    events: list[Event] = []
    run_in(folder, Script(environment=environment), observer=events.append)
    assert [record.block for record in folder.records] == [0] * 5 + [3] * 5
    noted = [event.text for event in events if isinstance(event, Noted)]
    assert noted == ["a new block begins, the environment changed: torch: 2.11.0 → 2.12.0"]


def test_an_environment_that_changed_between_sessions_begins_a_new_block(
    folder: RunFolder,
) -> None:
    run_in(folder, interrupting("b0.l1.t2"))
    folder.close()
    with RunFolder.open_for_resume(folder.path) as again:
        run_in(again, Script(environment=lambda _: an_environment(kernel="6.2.0")))
        assert [record.block for record in again.records] == [0, 0, 0, 2, 2, 3, 3, 3, 3, 3]
        assert len({record.environment for record in again.records}) == 2


def test_remaining_time_follows_how_it_has_been(folder: RunFolder) -> None:
    events: list[Event] = []
    run_in(folder, Script(time_s=lambda _: 10.0), observer=events.append)
    starting = next(event for event in events if isinstance(event, RunStarted))
    written = [event.remaining_s for event in events if isinstance(event, RecordWritten)]
    assert starting.remaining_s == pytest.approx(folder.plan.expected_s, rel=1e-3)
    assert max(written) > 3 * starting.remaining_s


def test_variables_that_changed_between_sessions_begin_one_new_block(folder: RunFolder) -> None:
    run_in(folder, interrupting("b1.l1.t2"))
    folder.close()
    with RunFolder.open_for_resume(folder.path) as again:
        run_in(again, Script(environment=lambda _: an_environment(variables={"NCCL_X": "1"})))
        assert [record.block for record in again.records] == [0] * 5 + [1] * 2 + [3] * 3


def test_a_record_has_all_that_was_measured() -> None:
    """Rows of a kind of workload that is new have no line here to be forgotten in."""
    plan = a_plan()
    (planned, *_), case = plan.launches[0].trials, plan.cases[0]
    place = TrialPlace(planned=planned, case=case, launch_id="b0.l0", block=0, position=0)
    node = NodeUse(
        node=0,
        elapsed_s=1.0,
        cores_count=1,
        cpu_user_s=0.1,
        cpu_system_s=0.1,
        cpu_softirq_s=0.1,
        cpu_busy_ratio=0.3,
    )
    row = NcclTestsRow(
        op="all_reduce",
        dtype="float32",
        size_bytes=8,
        iterations=1,
        time_s=1.0,
        algbw_gbyte_per_s=1.0,
        busbw_gbyte_per_s=1.0,
    )
    access = FileAccessRow(
        access="read",
        repetition=0,
        size_bytes=8,
        time_s=1.0,
        slowest_rank=0,
        parts_s={},
        operations=1,
    )
    measured = Measurement(
        metrics={"loss": 1.0, "mfu_ratio": None},
        missing={"mfu_ratio": "no peak"},
        collectives=(row,),
        file_accesses=(access,),
        nodes=(node,),
        data="a text",
        metric_ranks={"loss": 1},
    )
    assert measured.model_fields_set == Measurement.model_fields.keys(), "each is tried"
    outcome = TrialOutcome(status=Status.OK, started_unix_s=1.0, ended_unix_s=2.0)
    merged = Unreadable(measurement=measured, series={}, error=None)
    record = measured_record(place, outcome, merged, "here")
    for name in Measurement.model_fields:
        assert getattr(record, name) == getattr(measured, name)


HUNG = TrialError(kind=ErrorKind.HUNG, message="measure took longer than 9 s", rank=0)


def test_a_trial_that_hangs_names_the_storage_that_it_worked_on() -> None:
    """Once: where its rank was heard it is in there."""
    plan = a_plan()
    disk = plan.cases[0].model_copy(update={"storage": Storage(name="nas", path="/mnt/nas")})

    def message(error: TrialError, case: Case) -> str:
        place = TrialPlace(
            planned=plan.launches[0].trials[0], case=case, launch_id="b0.l0", block=0, position=0
        )
        outcome = TrialOutcome(
            status=Status.TIMEOUT, started_unix_s=1.0, ended_unix_s=2.0, error=error
        )
        merged = Unreadable(measurement=Measurement(), series={}, error=None)
        told = measured_record(place, outcome, merged, "here").error
        assert told is not None
        return told.message

    assert message(HUNG, plan.cases[0]) == HUNG.message
    named = "measure took longer than 9 s; storage `nas` (/mnt/nas) was worked on"
    assert message(HUNG, disk) == named
    assert message(HUNG.model_copy(update={"message": named}), disk) == named
    crashed = HUNG.model_copy(update={"kind": ErrorKind.CRASHED})
    assert message(crashed, disk) == HUNG.message
