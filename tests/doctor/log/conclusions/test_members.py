"""Is it told that the other processes of a Lightning job were never started, and only then?"""

from broadgauge.doctor.log.findings import log_findings
from broadgauge.doctor.log.reading import read_text

MEMBER = "Initializing distributed: GLOBAL_RANK: {rank}, MEMBER: {member}/2\n"
LIMIT = (
    "slurmstepd: error: *** JOB 42859712 ON gpu-1-3 CANCELLED AT 2024-04-30T10:42:19 DUE TO TIME "
    "LIMIT ***\n"
)
NCCL = "gpu-1-3:7:7 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\n"


def rules(text: str) -> set[str]:
    return {each.rule for each in log_findings(read_text(text))}


def test_one_of_two_until_the_time_limit() -> None:
    (found,) = log_findings(read_text(MEMBER.format(rank=0, member=1) + LIMIT))
    assert found.symptom == "only 1 of 2 processes came, until Slurm's time limit"
    assert "srun" in (found.fix or "")


def test_a_log_of_one_rank_is_no_sign_of_it() -> None:
    one = MEMBER.format(rank=0, member=1)
    assert "members-missing" not in rules(one)
    assert "members-missing" not in rules(one + NCCL + LIMIT)


def test_all_came() -> None:
    both = MEMBER.format(rank=0, member=1) + MEMBER.format(rank=1, member=2)
    assert "members-missing" not in rules(both + LIMIT)
