"""Is the rank named that others wait for, by where all of them stand?"""

from pathlib import Path

from broadgauge.messages.agent import PhaseExpired, RankSaid, StacksDumped
from broadgauge.messages.codec import encode
from broadgauge.messages.rank import Stacks
from broadgauge.messages.stacks import Frame, RankStack
from broadgauge.platforms.diagnosis import Symptoms
from broadgauge.platforms.hang import cause_of_hang
from broadgauge.specs.records.record import ErrorKind, Phase, TrialError

WHEN = "no `step_time_s` for 61.0 s, where one came every 0.5 s"
C10D = "/opt/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"


def at(rank: int, line: int, *, waits: bool = False, state: str = "S") -> RankStack:
    own = Frame(file="/home/me/train.py", line=line, function="step")
    call = (Frame(file=C10D, line=3075, function="all_reduce"),) if waits else ()
    return RankStack(rank=rank, frames=(*call, own), state=state, folder="/home/me")


def test_the_one_outside_communication_is_named_with_its_line() -> None:
    found = cause_of_hang([at(0, 40, waits=True), at(1, 12), at(2, 40, waits=True)], WHEN)
    assert found is not None
    assert (found.rank, found.frame) == (1, "train.py:12 in step")
    assert found.message == (
        "rank 1 hangs outside communication at train.py:12 in step; "
        f"ranks 0, 2 wait in all_reduce at train.py:40 in step; {WHEN}"
    )
    assert found.lines[-1] == '  File "/home/me/train.py", line 12, in step'


def test_of_several_outside_the_one_that_stands_alone() -> None:
    found = cause_of_hang([at(0, 40), at(1, 12), at(2, 40)], WHEN)
    assert found is not None
    assert found.rank == 1


def test_of_two_that_both_wait_none_is_named_but_where_they_stand() -> None:
    found = cause_of_hang([at(0, 40, waits=True), at(1, 50, waits=True)], WHEN)
    assert found is not None
    assert found.rank is None
    assert "rank 0 is in all_reduce at train.py:40 in step" in found.message
    assert "rank 1 is in all_reduce at train.py:50 in step" in found.message


def test_a_rank_in_another_collective_than_all_others_is_named() -> None:
    stacks = [at(rank, 50 if rank == 2 else 40, waits=True) for rank in range(4)]
    found = cause_of_hang(stacks, WHEN)
    assert found is not None
    assert found.rank == 2


def test_a_stopped_process_is_named_wherever_it_stands() -> None:
    found = cause_of_hang([at(0, 40), at(1, 40, waits=True, state="T")], WHEN)
    assert found is not None
    assert found.rank == 1
    assert "is stopped by a signal" in found.message


def test_a_rank_alone_is_named_and_one_of_unknown_others_that_waits_is_not() -> None:
    alone = cause_of_hang([at(0, 40, waits=True)], WHEN)
    assert alone is not None
    assert alone.rank == 0
    unknown = RankStack(rank=1, frames=())
    one = cause_of_hang([at(0, 40, waits=True), unknown], WHEN)
    assert one is not None
    assert one.rank is None
    assert cause_of_hang([unknown], WHEN) is None


def diagnosed(logs: list[Path], *events: RankSaid | PhaseExpired | StacksDumped) -> TrialError:
    symptoms = Symptoms()
    for event in events:
        symptoms.see(event)
    error = symptoms.error(logs)
    assert error is not None
    return error


def test_stacks_that_come_after_the_stall_of_rank_0_name_rank_1(tmp_path: Path) -> None:
    stacks = Stacks(trial_id="t", ranks=(at(0, 40, waits=True), at(1, 12)))
    error = diagnosed(
        [tmp_path / "node0.log"],
        PhaseExpired(phase=Phase.MEASURE, rank=0, message=WHEN),
        RankSaid(rank=0, message=encode(stacks)),
    )
    assert (error.kind, error.rank, error.frame) == (ErrorKind.HUNG, 1, "train.py:12 in step")
    assert error.phase is Phase.MEASURE


DUMP = """\
Current thread 0x00007f5b5bdc4b80 (most recent call first):
{call}  File "/work/planted.py", line {line} in step
"""


def test_stacks_in_the_ranks_logs_are_read_and_where_none_are_the_silent_one_stays(
    tmp_path: Path,
) -> None:
    logs = [tmp_path / "0.log", tmp_path / "1.log"]
    expired = PhaseExpired(
        phase=Phase.MEASURE, rank=0, message="measure took longer than 9 s; rank 0 was silent"
    )
    assert diagnosed(logs, expired).rank == 0
    logs[0].write_text(DUMP.format(call=f'  File "{C10D}", line 9 in barrier\n', line=40))
    logs[1].write_text(DUMP.format(call="", line=12))
    error = diagnosed(logs, expired)
    assert error.rank == 1
    assert error.message.endswith("; measure took longer than 9 s")
    stopped = PhaseExpired(phase=Phase.MEASURE, rank=0, message="x; its process is stopped")
    assert diagnosed(logs, stopped).rank == 0


def test_garbage_for_stacks_is_no_reason_to_stop(tmp_path: Path) -> None:
    error = diagnosed(
        [tmp_path / "0.log"],
        RankSaid(rank=0, message={"type": "stacks", "ranks": [{"rank": "x"}]}),
        PhaseExpired(phase=Phase.MEASURE, rank=0, message=WHEN),
    )
    assert error.message == WHEN
