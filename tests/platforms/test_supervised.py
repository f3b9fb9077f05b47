"""Does a launch say what its ranks do, and does it end when they go wrong?"""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.platforms.launches import (
    LIMITS,
    assert_known_or_noted,
    make_case,
    make_platform,
    make_request,
    quiet,
    run_once,
)

from broadgauge.messages.waiting_limits import FACTOR_VARIABLE
from broadgauge.platforms.connection import SupervisorConnection
from broadgauge.platforms.emulated_cluster import EmulatedPlatform
from broadgauge.platforms.launch_folders import LaunchFolders
from broadgauge.platforms.local import LocalPlatform
from broadgauge.platforms.supervised import SupervisedLaunch, trial_order
from broadgauge.specs.case import Case
from broadgauge.specs.errors import LaunchError, RunFolderError
from broadgauge.specs.launching import TrialOutcome, TrialRequest
from broadgauge.specs.networks.network import Network
from broadgauge.specs.records.record import ErrorKind, Phase, Status

KINDS = ["local", pytest.param("emulated", marks=pytest.mark.namespaces)]
both = pytest.mark.parametrize("kind", KINDS)


def trial(case: Case, number: int = 0) -> TrialRequest:
    return TrialRequest(trial_id=f"t{number}", case=case, seed=number)


@both
def test_trials_of_living_ranks(kind: str, tmp_path: Path) -> None:
    case, told = make_case(kind), []
    launch = make_platform(tmp_path, kind, "ok").start(make_request(case), quiet)
    outcomes = [
        launch.run_trial(trial(case, number), lambda phase, detail: told.append((phase, detail)))
        for number in range(2)
    ]
    assert launch.is_alive
    launch.close()
    assert not launch.is_alive
    for number, outcome in enumerate(outcomes):
        assert (outcome.status, outcome.error) == (Status.OK, None)
        assert [mark.label for mark in outcome.marks] == ["a:begin", "a:end"]
        types = ["phase", "mark", "phase", "block", "mark", "done"]
        for messages in outcome.messages:
            assert [message["type"] for message in messages] == types
            assert messages[3]["trial_id"] == f"t{number}"
    assert (Phase.MEASURE, "fake work") in told
    assert launch.environment.torch == "fake"
    assert launch.environment.platform == kind
    assert launch.environment.variables["OMP_NUM_THREADS"] == "1"
    assert not (tmp_path / "logs" / "b0.0.supervisor.log").exists()
    for outcome in outcomes if kind == "emulated" else ():
        assert_counters_only_rise(outcome)


def assert_counters_only_rise(outcome: TrialOutcome) -> None:
    begin, end = outcome.marks
    assert begin.time_s < end.time_s
    assert len(begin.nodes) == len(end.nodes) == 2
    for before, after in zip(begin.nodes, end.nodes, strict=True):
        assert before.tx_bytes is not None
        assert after.tx_bytes is not None
        assert 0 < before.tx_bytes <= after.tx_bytes
        assert before.cpu_user_s <= after.cpu_user_s
        assert before.cores_count == 1


@pytest.mark.measured
@pytest.mark.namespaces
def test_the_link_is_described(tmp_path: Path) -> None:
    outcome = run_once("emulated", tmp_path, "ok")
    assert outcome.link is not None
    assert outcome.link.ceiling_gbps > 0.5
    assert 0 < outcome.link.round_trip_s < 0.1


@pytest.mark.namespaces
def test_the_link_is_reshaped_between_trials(tmp_path: Path) -> None:
    """Of each link everything is known that is to be, or a note says what is not."""
    slow = make_case("emulated")
    fast = make_case("emulated", network=Network(name="fast", rate_gbps=2.0, mtu_bytes=9000))
    request = make_request(slow, cases=(slow, fast))
    platform = make_platform(tmp_path, "emulated", "ok")
    assert isinstance(platform, EmulatedPlatform)
    launch = platform.start(request, quiet)
    outcomes = [launch.run_trial(trial(case), quiet) for case in (slow, fast, slow)]
    launch.close()
    assert [outcome.status for outcome in outcomes] == [Status.OK] * 3
    links = [outcome.link for outcome in outcomes]
    assert links[0] == links[2], "measured once"
    assert_known_or_noted(links[:2], platform.notes)


@both
def test_a_rank_that_exits_is_crashed(kind: str, tmp_path: Path) -> None:
    outcome = run_once(kind, tmp_path, "exit")
    assert outcome.status is Status.FAILED
    assert outcome.error is not None
    assert outcome.error.kind is ErrorKind.CRASHED
    assert outcome.error.rank == 1
    assert outcome.error.phase is Phase.MEASURE
    assert "exit code 7" in outcome.error.message
    assert outcome.error.last_lines == ("the last thing it said",)
    assert [message["type"] for message in outcome.messages[1]][-1] == "block"


@both
def test_a_rank_that_is_killed_is_killed(kind: str, tmp_path: Path) -> None:
    error = run_once(kind, tmp_path, "sigkill").error
    assert error is not None
    assert (error.kind, error.rank) == (ErrorKind.KILLED, 1)
    assert "SIGKILL" in error.message


@both
@pytest.mark.parametrize("scenario", ["stop", "hang"])
def test_a_silent_rank_is_named_and_says_where_it_is(
    kind: str, scenario: str, tmp_path: Path
) -> None:
    """It is silent for its whole limit, within which the other has come to its mark."""
    outcome = run_once(kind, tmp_path, scenario, measure_s=3.0)
    error = outcome.error
    assert outcome.status is Status.TIMEOUT
    assert error is not None
    assert (error.kind, error.rank, error.phase) == (ErrorKind.HUNG, 1, Phase.MEASURE)
    assert "others wait at a:end" in error.message
    assert "its last block: a" in error.message
    assert ("stopped" in error.message) == (scenario == "stop")
    assert outcome.ended_unix_s - outcome.started_unix_s >= 3.0
    log = (tmp_path / "logs" / "b0.0.rank1.log").read_text()
    assert "most recent call first" in log
    assert "in misbehave" in log


@pytest.mark.measured
@both
@pytest.mark.parametrize("scenario", ["stop", "hang"])
def test_a_silent_rank_is_named_in_time(
    kind: str, scenario: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FACTOR_VARIABLE, "1")
    limit_s, ending_s = 1.0, 8.0
    outcome = run_once(kind, tmp_path, scenario, measure_s=limit_s)
    assert outcome.status is Status.TIMEOUT
    assert outcome.ended_unix_s - outcome.started_unix_s < limit_s + ending_s


def test_the_process_groups_own_time_out_blames_the_silent_rank_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The silent one is heard out, which takes 3 s of the 10 that CI gives it."""
    monkeypatch.setenv(FACTOR_VARIABLE, "3")
    outcome = run_once("local", tmp_path, "waited")
    assert outcome.status is Status.TIMEOUT
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.rank) == (ErrorKind.HUNG, 1)
    assert any("in misbehave" in line for line in outcome.error.last_lines)


@both
def test_the_rank_that_knows_why_is_believed(kind: str, tmp_path: Path) -> None:
    error = run_once(kind, tmp_path, "failed").error
    assert error is not None
    assert (error.kind, error.rank) == (ErrorKind.REFUSED, 1)
    assert error.message == "rank 1: no such file: train.py"
    assert error.last_lines == ("Traceback: the root of it",)


def test_a_flood_on_stdout_blocks_nobody(tmp_path: Path) -> None:
    assert run_once("local", tmp_path, "flood").status is Status.OK
    assert (tmp_path / "logs" / "b0.0.rank1.log").stat().st_size > 12_000_000


def test_garbage_on_the_result_pipe_is_noted_and_passed_over(tmp_path: Path) -> None:
    assert run_once("local", tmp_path, "garbage").status is Status.OK
    log = (tmp_path / "logs" / "b0.0.rank1.log").read_text()
    assert log.count("not a frame on the result pipe") == 4


@both
def test_the_end_of_the_supervisor_is_launcher_lost(kind: str, tmp_path: Path) -> None:
    case = make_case(kind)
    launch = make_platform(tmp_path, kind, "hang").start(make_request(case), quiet)
    assert isinstance(launch, SupervisedLaunch)

    def kill_guard(phase: Phase, detail: str) -> None:
        if phase is Phase.MEASURE:
            os.kill(launch.pid, signal.SIGKILL)

    outcome = launch.run_trial(trial(case), kill_guard)
    assert outcome.error is not None
    assert outcome.error.kind is ErrorKind.LAUNCHER_LOST
    assert not launch.is_alive
    launch.close()


@both
def test_an_end_between_trials_is_seen(kind: str, tmp_path: Path) -> None:
    case = make_case(kind)
    launch = make_platform(tmp_path, kind, "ok").start(make_request(case), quiet)
    assert isinstance(launch, SupervisedLaunch)
    assert launch.is_alive
    os.kill(launch.pid, signal.SIGKILL)
    deadline = time.monotonic() + 300
    while launch.is_alive and time.monotonic() < deadline:
        time.sleep(0.01)
    outcome = launch.run_trial(trial(case), quiet)
    assert outcome.error is not None
    assert outcome.error.kind is ErrorKind.LAUNCHER_LOST
    launch.close()


def test_ranks_that_do_not_leave_are_made_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FACTOR_VARIABLE, "0.3")  # from TERM to KILL
    case = make_case("local")
    limits = LIMITS.model_copy(update={"teardown_s": 0.5})
    request = make_request(case, limits=limits)
    launch = make_platform(tmp_path, "local", "clings").start(request, quiet)
    launch.close()
    assert not launch.is_alive


@both
def test_a_rank_that_dies_at_its_start_is_a_launch_error(kind: str, tmp_path: Path) -> None:
    request = make_request(make_case(kind))
    with pytest.raises(LaunchError, match="ImportError: no such library") as caught:
        make_platform(tmp_path, kind, "stillborn").start(request, quiet)
    assert "exit code 3" in str(caught.value)


def test_a_rank_that_never_speaks_is_a_launch_error(tmp_path: Path) -> None:
    """Of the two the other has begun to speak within that time, and the limit is its own."""
    limits = LIMITS.model_copy(update={"rendezvous_s": 6.0})
    request = make_request(make_case("local"), limits=limits)
    with pytest.raises(LaunchError, match="rank 1 was silent"):
        make_platform(tmp_path, "local", "mute").start(request, quiet)


def test_no_such_working_folder(tmp_path: Path) -> None:
    folders = LaunchFolders(logs=tmp_path / "logs", working=tmp_path / "gone")
    with pytest.raises(LaunchError, match="working folder"):
        LocalPlatform(folders).start(make_request(make_case("local")), quiet)


def test_a_log_folder_that_can_not_be(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file is in the way")
    with pytest.raises(RunFolderError, match="log folder"):
        make_platform(tmp_path, "local", "ok").start(make_request(make_case("local")), quiet)


@pytest.mark.root
def test_a_full_disk_is_an_error_of_the_run_folder(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], check=False
    )
    if mounted.returncode:
        pytest.skip("this root may not mount a tmpfs")
    try:
        with pytest.raises(OSError, match="space"):
            (folder / "filler").write_bytes(bytes(2**20))
        with pytest.raises(RunFolderError, match="No space left"):
            make_platform(tmp_path, "local", "ok").start(make_request(make_case("local")), quiet)
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def interrupt_a_trial(folder: Path) -> SupervisedLaunch:
    """In whose measuring part a rank hangs."""
    case = make_case("local")
    launch = make_platform(folder, "local", "hang").start(make_request(case), quiet)
    assert isinstance(launch, SupervisedLaunch)

    def interrupt(phase: Phase, detail: str) -> None:
        if phase is Phase.MEASURE:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        launch.run_trial(trial(case), interrupt)
    return launch


def test_an_interrupt_in_mid_trial_leaves_by_close(tmp_path: Path) -> None:
    launch = interrupt_a_trial(tmp_path)
    assert launch.is_alive
    launch.close()
    assert not launch.is_alive
    with pytest.raises(ProcessLookupError):
        os.kill(launch.pid, 0)


@pytest.mark.measured
def test_an_interrupt_in_mid_trial_leaves_at_once(tmp_path: Path) -> None:
    launch = interrupt_a_trial(tmp_path)
    begin = time.monotonic()
    launch.close()
    assert time.monotonic() - begin < LIMITS.teardown_s


def test_an_interrupt_while_starting_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(self: SupervisorConnection, timeout_s: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(SupervisorConnection, "receive", interrupt)
    with pytest.raises(KeyboardInterrupt):
        make_platform(tmp_path, "local", "ok").start(make_request(make_case("local")), quiet)


@both
def test_the_commands_are_shown_as_they_are(kind: str, tmp_path: Path) -> None:
    request = make_request(make_case(kind))
    lines = make_platform(tmp_path, kind, "ok").rank_commands(request)
    assert len(lines) == 2
    assert "RANK=1 WORLD_SIZE=2" in lines[1]
    assert lines[1].endswith("fake_worker.py ok")
    assert "MINE=yes" in lines[1]
    master = "MASTER_ADDR=10.80.0.1" if kind == "emulated" else "MASTER_ADDR=127.0.0.1"
    assert master in lines[0]
    assert not (tmp_path / "logs").exists()


def test_the_process_group_is_limited_by_each_phases_own_limit() -> None:
    limits = LIMITS.model_copy(update={"warm_up_s": 10.0, "measure_s": 3000.0})
    order = trial_order(trial(make_case("local")), limits)
    timeouts_s = order.command.process_group_timeouts_s
    assert timeouts_s[Phase.MEASURE] == pytest.approx(0.8 * 3000)
    assert timeouts_s[Phase.WARM_UP] == pytest.approx(0.8 * 10)
    assert set(timeouts_s) == set(Phase)
