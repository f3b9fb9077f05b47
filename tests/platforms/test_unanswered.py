"""A storage does not answer: is it named, whoever tells first that nothing goes on?"""

from pathlib import Path

from broadgauge.messages.agent import Event, PhaseExpired, RankLeft, RankSaid
from broadgauge.messages.codec import encode
from broadgauge.messages.rank import PhaseBegins, Unanswered
from broadgauge.platforms.diagnosis import Symptoms
from broadgauge.specs.records.record import ErrorKind, Phase, TrialError

WAITS = "storage `nas` (/mnt/nas) does not answer: fsync of /mnt/nas/file has not come back"
EXPIRED = PhaseExpired(
    phase=Phase.MEASURE, rank=0, message="measure took longer than 9 s; rank 0 was silent"
)
TIMED_OUT = {"type": "failed", "kind": "hung", "message": "RuntimeError: Timed out waiting 8000ms"}


def unanswered(rank: int, message: str = WAITS) -> RankSaid:
    return RankSaid(rank=rank, message=encode(Unanswered(trial_id="t", message=message)))


def diagnosed(folder: Path, *events: Event) -> TrialError:
    symptoms = Symptoms()
    for event in events:
        symptoms.see(event)
    error = symptoms.error([folder / "0.log", folder / "1.log"])
    assert error is not None
    return error


def test_a_limit_that_passes_names_the_rank_and_what_it_waits_for(tmp_path: Path) -> None:
    begins = PhaseBegins(trial_id="t", phase=Phase.MEASURE)
    said = RankSaid(rank=1, message=encode(begins))
    error = diagnosed(tmp_path, said, unanswered(1), EXPIRED)
    assert error.message == f"rank 1: {WAITS}; measure took longer than 9 s"
    assert (error.kind, error.rank, error.phase) == (ErrorKind.HUNG, 1, Phase.MEASURE)


def test_ranks_that_waited_for_it_in_vain_are_not_blamed(tmp_path: Path) -> None:
    told = RankSaid(rank=0, message=TIMED_OUT)
    error = diagnosed(tmp_path, unanswered(1), told)
    assert error.message.startswith(f"rank 1: {WAITS}; rank 0: RuntimeError: Timed out")
    assert error.rank == 1


def test_what_has_answered_is_not_named(tmp_path: Path) -> None:
    assert "nas" not in diagnosed(tmp_path, unanswered(0), unanswered(0, ""), EXPIRED).message
    goes_on = RankSaid(rank=0, message={"type": "mark", "label": "a"})
    assert "nas" not in diagnosed(tmp_path, unanswered(0), goes_on, EXPIRED).message


def test_a_failure_that_is_no_hang_is_told_as_it_is(tmp_path: Path) -> None:
    failed = {"type": "failed", "kind": "no_space", "message": "No space left"}
    error = diagnosed(tmp_path, unanswered(1), RankSaid(rank=0, message=failed))
    assert (error.kind, error.rank) == (ErrorKind.NO_SPACE, 0)


def test_ranks_that_could_not_be_killed_are_told(tmp_path: Path) -> None:
    one = diagnosed(tmp_path, unanswered(1), EXPIRED, RankLeft(rank=1))
    assert one.message.endswith("; rank 1 is left behind: what waits in the kernel can't be killed")
    both = diagnosed(tmp_path, unanswered(1), EXPIRED, RankLeft(rank=1), RankLeft(rank=0))
    assert "; ranks 0, 1 are left behind: " in both.message
