"""Which ranks did the others wait for?"""

from broadgauge.doctor.log.findings import log_findings
from broadgauge.doctor.log.reading import read_text

DUMP = (
    "[rank{0}]:[E1123 08:49:51.3 ProcessGroupNCCL.cpp:1914] [PG ID 0 PG GUID 0 Rank {0}] "
    "Received a dump signal due to a collective timeout from  rank 0 and we will try our best to "
    "dump the debug info. Last enqueued NCCL work: {1}, last completed NCCL work: 5."
)


def log_of(*issued: int) -> str:
    return "\n".join(DUMP.format(rank, number) for rank, number in enumerate(issued))


def test_the_rank_that_issued_fewer_is_named() -> None:
    (finding,) = log_findings(read_text(log_of(6, 6, 5, 6)))
    assert finding.rule == "rank-behind"
    assert (
        finding.symptom == "rank 2 has issued 5 collectives, ranks 0, 1 and 3 up to 6: these wait"
    )
    assert "Rank 2]" in finding.evidence[0]


def test_several_may_be_behind() -> None:
    (finding,) = log_findings(read_text(log_of(9, 7, 7, 8)))
    assert finding.symptom.startswith("ranks 1 and 2 have issued 7 collectives")


def test_ranks_that_are_level_are_not_judged() -> None:
    assert [each.rule for each in log_findings(read_text(log_of(6, 6)))] == ["torch-dump-signal"]
