"""Is the rank believed that knows why?"""

import signal
from pathlib import Path

import pytest

from broadgauge.messages.agent import (
    Event,
    LogFlooded,
    PhaseExpired,
    RankExited,
    RankSaid,
    StacksDumped,
)
from broadgauge.platforms.diagnosis import Symptoms, status_of
from broadgauge.specs.records.record import ErrorKind, Phase, Status, TrialError


def failed(rank: int, message: str, kind: str = "crashed") -> RankSaid:
    return RankSaid(rank=rank, message={"type": "failed", "kind": kind, "message": message})


def exited(rank: int, code: int, *, was_told_to: bool = False) -> RankExited:
    return RankExited(
        rank=rank,
        exit_code=code if code >= 0 else None,
        signal=-code if code < 0 else None,
        was_told_to=was_told_to,
    )


def diagnose(folder: Path, *events: Event) -> TrialError | None:
    symptoms = Symptoms()
    for event in events:
        symptoms.see(event)
    return symptoms.error([folder / f"{rank}.log" for rank in range(3)])


def test_nothing_is_wrong(tmp_path: Path) -> None:
    assert diagnose(tmp_path, exited(0, -signal.SIGTERM, was_told_to=True)) is None
    assert status_of(None) is Status.OK


@pytest.mark.parametrize(
    "peers_words",
    [
        "Connection closed by peer [10.80.0.2]:3741",
        "RuntimeError: [/pytorch/gloo] Connection reset by peer",
        "NCCL error: remote process exited or there was a network error",
        "Broken pipe",
    ],
)
def test_the_cause_is_believed_before_what_peers_saw(peers_words: str, tmp_path: Path) -> None:
    (tmp_path / "1.log").write_text("log of 1\n")
    error = diagnose(tmp_path, failed(0, peers_words), failed(1, "CUDA out of memory", "refused"))
    assert error is not None
    assert (error.rank, error.kind) == (1, ErrorKind.REFUSED)
    assert error.last_lines == ("log of 1",)


def test_a_silent_exit_is_believed_before_what_peers_saw(tmp_path: Path) -> None:
    error = diagnose(tmp_path, failed(0, "Connection closed by peer"), exited(1, 9), exited(0, 1))
    assert error is not None
    assert (error.rank, error.kind) == (1, ErrorKind.CRASHED)


REFUSED = "DistNetworkError: (errno: 111 - Connection refused)"


@pytest.mark.parametrize(
    ("words", "log"),
    [
        ("the command ended with exit code 1; its last lines:\nexitcode : 1", REFUSED),
        ("RuntimeError: Gloo connectFullMesh failed with no error", ""),
        ("[10.80.0.1] connect [10.80.0.2]:4321 refused", ""),
        ("ConnectionRefusedError", ""),
        ("DistStoreError: Timed out after 97 seconds waiting for clients. 1/2 joined", ""),
    ],
)
def test_a_rank_that_died_is_blamed_before_one_that_tells_of_it(
    words: str, log: str, tmp_path: Path
) -> None:
    (tmp_path / "0.log").write_text(log)
    told = failed(0, words, "hung" if "Timed out" in words else "crashed")
    error = diagnose(tmp_path, told, exited(1, 7))
    assert error is not None
    assert error.rank == 1
    assert "exit code 7" in error.message


def test_an_exit_code_that_answers_a_peers_death_is_not_its_cause(tmp_path: Path) -> None:
    (tmp_path / "0.log").write_text(f"Traceback\n{REFUSED}\n")
    error = diagnose(tmp_path, exited(0, 1), exited(1, 9))
    assert error is not None
    assert error.rank == 1


def test_what_is_said_after_a_silent_exit_may_come_of_it(tmp_path: Path) -> None:
    error = diagnose(tmp_path, exited(1, 9), failed(0, "RuntimeError: no such key"))
    assert error is not None
    assert error.rank == 1
    error = diagnose(tmp_path, failed(0, "RuntimeError: no such key"), exited(1, 9))
    assert error is not None
    assert error.rank == 0


def test_a_kill_is_believed_before_an_abort_that_came_first(tmp_path: Path) -> None:
    error = diagnose(tmp_path, exited(0, -signal.SIGABRT), exited(1, -signal.SIGKILL))
    assert error is not None
    assert (error.rank, error.kind) == (1, ErrorKind.KILLED)
    assert "out-of-memory" in error.message


def test_of_equals_the_first_is_believed(tmp_path: Path) -> None:
    error = diagnose(tmp_path, failed(2, "division by zero"), failed(0, "division by zero"))
    assert error is not None
    assert error.rank == 2


def test_a_peers_words_are_better_than_none(tmp_path: Path) -> None:
    error = diagnose(tmp_path, failed(0, "Connection closed by peer"))
    assert error is not None
    assert error.message == "rank 0: Connection closed by peer"


def test_an_exit_after_words_is_no_second_failure(tmp_path: Path) -> None:
    error = diagnose(tmp_path, failed(0, "why", "no such kind"), exited(0, 1))
    assert error is not None
    assert (error.kind, error.message) == (ErrorKind.CRASHED, "rank 0: why")


def test_a_time_limit_is_a_time_out(tmp_path: Path) -> None:
    said = RankSaid(rank=1, message={"type": "phase", "phase": "warm_up"})
    expired = PhaseExpired(phase=Phase.WARM_UP, rank=1, message="too long")
    error = diagnose(tmp_path, said, expired, exited(1, -signal.SIGUSR1, was_told_to=True))
    assert error is not None
    assert (error.kind, error.phase, error.rank) == (ErrorKind.HUNG, Phase.WARM_UP, 1)
    assert status_of(error) is Status.TIMEOUT


def test_the_phase_is_where_the_rank_was(tmp_path: Path) -> None:
    said = RankSaid(rank=1, message={"type": "phase", "phase": "warm_up"})
    error = diagnose(tmp_path, said, exited(1, 1))
    assert error is not None
    assert error.phase is Phase.WARM_UP


def test_a_flooded_log_says_how_much(tmp_path: Path) -> None:
    error = diagnose(tmp_path, LogFlooded(rank=0, limit_bytes=2**30))
    assert error is not None
    assert "1024 MiB" in error.message


def test_a_rank_that_waited_in_vain_blames_the_silent_one(tmp_path: Path) -> None:
    begun = [RankSaid(rank=n, message={"type": "phase", "phase": "measure"}) for n in (1, 0, 2)]
    waited = failed(0, "RuntimeError: Timed out waiting 1600ms for recv", "hung")
    late = failed(1, "Connection closed by peer")
    error = diagnose(tmp_path, *begun, waited, exited(0, 1), StacksDumped(), late)
    assert error is not None
    assert (error.kind, error.rank, error.phase) == (ErrorKind.HUNG, 1, Phase.MEASURE)
    assert error.message.startswith(
        "rank 1 fell silent, its last message: phase measure; its last block"
    )


def test_a_cause_is_believed_before_a_rank_that_waited(tmp_path: Path) -> None:
    waited = failed(0, "Timed out waiting 1600ms for recv", "hung")
    error = diagnose(tmp_path, waited, failed(1, "no such file", "refused"))
    assert error is not None
    assert (error.kind, error.rank) == (ErrorKind.REFUSED, 1)


def test_an_abort_of_torchs_watchdog_is_a_time_out(tmp_path: Path) -> None:
    said = "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3)"
    (tmp_path / "0.log").write_text(f"{said}\n" + "frame\n" * 100)
    error = diagnose(tmp_path, exited(0, -signal.SIGABRT))
    assert error is not None
    assert error.kind is ErrorKind.HUNG
    assert "WorkNCCL(SeqNum=3)" in error.message
    assert error.rank != 0
    (tmp_path / "0.log").write_text("double free\n")
    error = diagnose(tmp_path, exited(0, -signal.SIGABRT))
    assert error is not None
    assert (error.kind, error.rank) == (ErrorKind.KILLED, 0)
