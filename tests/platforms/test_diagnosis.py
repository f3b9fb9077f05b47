"""Is the rank believed that knows why?"""

import signal

import pytest

from broadgauge.platforms.diagnosis import Symptoms, status_of
from broadgauge.platforms.supervisor.protocol import (
    Event,
    LogFlooded,
    PhaseExpired,
    RankExited,
    RankSaid,
)
from broadgauge.specs.record import ErrorKind, Phase, Status, TrialError


def failed(rank: int, message: str, kind: str = "crashed") -> RankSaid:
    return RankSaid(rank=rank, message={"type": "failed", "kind": kind, "message": message})


def exited(rank: int, code: int, *, was_told_to: bool = False) -> RankExited:
    return RankExited(
        rank=rank,
        exit_code=code if code >= 0 else None,
        signal=-code if code < 0 else None,
        was_told_to=was_told_to,
    )


def diagnose(*events: Event) -> TrialError | None:
    symptoms = Symptoms()
    for event in events:
        symptoms.see(event)
    return symptoms.error(lambda rank: (f"log of {rank}",))


def test_nothing_is_wrong() -> None:
    assert diagnose(exited(0, -signal.SIGTERM, was_told_to=True)) is None
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
def test_the_cause_is_believed_before_what_peers_saw(peers_words: str) -> None:
    error = diagnose(failed(0, peers_words), failed(1, "CUDA out of memory", "refused"))
    assert error is not None
    assert (error.rank, error.kind) == (1, ErrorKind.REFUSED)
    assert error.last_lines == ("log of 1",)


def test_a_silent_exit_is_believed_before_what_peers_saw() -> None:
    error = diagnose(failed(0, "Connection closed by peer"), exited(1, 9), exited(0, 1))
    assert error is not None
    assert (error.rank, error.kind) == (1, ErrorKind.CRASHED)


def test_a_kill_is_believed_before_an_abort_that_came_first() -> None:
    error = diagnose(exited(0, -signal.SIGABRT), exited(1, -signal.SIGKILL))
    assert error is not None
    assert (error.rank, error.kind) == (1, ErrorKind.KILLED)
    assert "out-of-memory" in error.message


def test_of_equals_the_first_is_believed() -> None:
    error = diagnose(failed(2, "division by zero"), failed(0, "division by zero"))
    assert error is not None
    assert error.rank == 2


def test_a_peers_words_are_better_than_none() -> None:
    error = diagnose(failed(0, "Connection closed by peer"))
    assert error is not None
    assert error.message == "rank 0: Connection closed by peer"


def test_an_exit_after_words_is_no_second_failure() -> None:
    error = diagnose(failed(0, "why", "no such kind"), exited(0, 1))
    assert error is not None
    assert (error.kind, error.message) == (ErrorKind.CRASHED, "rank 0: why")


def test_a_time_limit_is_a_time_out() -> None:
    said = RankSaid(rank=1, message={"type": "phase", "phase": "warm_up"})
    expired = PhaseExpired(phase=Phase.WARM_UP, rank=1, message="too long")
    error = diagnose(said, expired, exited(1, -signal.SIGUSR1, was_told_to=True))
    assert error is not None
    assert (error.kind, error.phase, error.rank) == (ErrorKind.HUNG, Phase.WARM_UP, 1)
    assert status_of(error) is Status.TIMEOUT


def test_the_phase_is_where_the_rank_was() -> None:
    said = RankSaid(rank=1, message={"type": "phase", "phase": "warm_up"})
    error = diagnose(said, exited(1, 1))
    assert error is not None
    assert error.phase is Phase.WARM_UP


def test_a_flooded_log_says_how_much() -> None:
    error = diagnose(LogFlooded(rank=0, limit_bytes=2**30))
    assert error is not None
    assert "1024 MiB" in error.message
