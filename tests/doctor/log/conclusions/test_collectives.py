"""Are collectives told apart by their process group, which numbers its own?"""

from broadgauge.doctor.log.findings import log_findings
from broadgauge.doctor.log.reading import read_text

START = (
    "n1:{pid}:{pid} [{rank}] NCCL INFO ncclCommInitRank comm 0x5 rank {rank} nranks 2 cudaDev "
    "{rank} nvmlDev {rank} busId {bus}000 commId 0x2f24707b1170cb7f - Init {state}\n"
)
TIMEOUT = (
    "[rank{rank}]:[E1106 09:12:44.1 ProcessGroupNCCL.cpp:616] [PG ID {group} PG GUID {group} "
    "Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, "
    "OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for 600012 "
    "milliseconds before timing out.\n"
)


def told(*groups: int) -> set[str]:
    """Rank n waits in number 7 of its group."""
    job = "".join(
        START.format(pid=10 + rank, rank=rank, bus=rank + 1, state=state)
        for state in ("START", "COMPLETE")
        for rank in range(2)
    )
    waits = "".join(TIMEOUT.format(rank=rank, group=group) for rank, group in enumerate(groups))
    return {each.rule for each in log_findings(read_text(job + waits))}


def test_all_ranks_in_one_collective_of_one_group_miss_nobody() -> None:
    assert "collective-stalled" in told(0, 0)


def test_the_same_number_of_two_groups_is_not_one_collective() -> None:
    assert "collective-stalled" not in told(0, 1)


def test_groups_are_told_apart_by_what_all_ranks_call_them() -> None:
    """The id counts each process's own groups: two groups of other ranks may both be 1."""
    job = "".join(
        TIMEOUT.format(rank=rank, group=1)
        .replace("PG GUID 1 ", f"PG GUID {guid}(tp) ")
        .replace("ALLREDUCE", op)
        for rank, guid, op in ((0, 1, "ALLREDUCE"), (2, 2, "ALLGATHER"))
    )
    assert "ranks-in-different-collectives" not in {f.rule for f in log_findings(read_text(job))}


def test_a_line_without_a_group_is_of_the_default_one() -> None:
    lines = TIMEOUT.format(rank=0, group=0), TIMEOUT.format(rank=1, group=0)
    bare = lines[1].replace("[PG ID 0 PG GUID 0 Rank 1]", "[Rank 1]").replace("REDUCE", "GATHER")
    found = {f.rule for f in log_findings(read_text(lines[0] + bare))}
    assert "ranks-in-different-collectives" in found


def test_ranks_in_collectives_of_different_numbers_are_out_of_step() -> None:
    first = TIMEOUT.format(rank=0, group=0)
    second = TIMEOUT.format(rank=1, group=0).replace("SeqNum=7", "SeqNum=8")
    (found,) = log_findings(read_text(first + second))
    assert found.rule == "ranks-out-of-step"
    assert "rank 0 in number 7" in found.symptom
    assert "rank 1 in number 8" in found.symptom
    assert "drop_last" in (found.fix or "")


def test_incidents_that_are_far_apart_are_not_compared() -> None:
    first = TIMEOUT.format(rank=0, group=0)
    second = TIMEOUT.format(rank=1, group=0).replace("SeqNum=7", "SeqNum=9000")
    assert "ranks-out-of-step" not in {f.rule for f in log_findings(read_text(first + second))}
