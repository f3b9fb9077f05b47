"""Is the cause told, and not each echo of it; and once, however many ranks say it?"""

from broadgauge.doctor.log.findings import log_findings
from broadgauge.doctor.log.reading import read_text
from broadgauge.specs.records.record import Finding

MEMORY = (
    "[rank{0}]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {1} MiB. GPU {2} has "
    "a total capacity of 79.10 GiB of which {1} MiB is free."
)
TIMEOUT = (
    "[rank{0}]:[E1123 08:49:46.4 ProcessGroupNCCL.cpp:689] [Rank {0}] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum={1}, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
    "Timeout(ms)=8000) ran for 8054 milliseconds before timing out."
)
LAUNCHER = (
    "E1123 11:02:23.2 30038 torch/distributed/elastic/multiprocessing/api.py:986] failed "
    "(exitcode: {}) local_rank: 1 (pid: 30081) of binary: /usr/bin/python"
)


def findings_of(*lines: str) -> tuple[Finding, ...]:
    return log_findings(read_text("\n".join(lines)))


def rules_of(*lines: str) -> list[str]:
    return [finding.rule for finding in findings_of(*lines)]


def test_memory_that_is_full_on_512_ranks_is_one_finding() -> None:
    (finding,) = findings_of(*(MEMORY.format(rank, 8 * rank, rank % 8) for rank in range(512)))
    assert finding.rule == "gpu-out-of-memory"
    assert finding.symptom == "the GPU of ranks 0 to 511 is out of memory"
    assert finding.evidence[-1] == "said 512 times by 512 processes"


def test_an_exception_of_many_ranks_is_one_finding() -> None:
    (finding,) = findings_of(*(f"[rank{rank}]: ValueError: no sample" for rank in range(2000)))
    assert finding.symptom == "ranks 0 to 1999 ended with ValueError: no sample"


def test_time_outs_of_others_are_consequences_of_a_crash() -> None:
    lines = (MEMORY.format(3, 20, 3), TIMEOUT.format(0, 6), TIMEOUT.format(1, 6))
    assert rules_of(*lines) == ["gpu-out-of-memory"]
    assert rules_of(*reversed(lines)) == ["gpu-out-of-memory"]


def test_a_time_out_alone_names_operation_and_ranks() -> None:
    (finding,) = findings_of(TIMEOUT.format(0, 6), TIMEOUT.format(1, 6))
    assert finding.rule == "torch-watchdog-timeout"
    assert finding.symptom.startswith("ranks 0 and 1 waited 8 s in vain")


def test_what_the_launcher_adds_is_told_only_where_nobody_said_more() -> None:
    assert rules_of(LAUNCHER.format(3)) == ["rank-failed"]
    assert rules_of("[rank1]: KeyError: 'id'", LAUNCHER.format(1)) == ["rank-exception"]
    assert rules_of(TIMEOUT.format(0, 6), LAUNCHER.format(-6)) == ["torch-watchdog-timeout"]


def test_a_kill_is_the_cause_of_what_peers_say() -> None:
    lost = (
        "[rank0]: RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] "
        "Connection closed by peer [127.0.0.1]:14225"
    )
    assert rules_of(lost) == ["gloo-peer-lost"]
    assert rules_of(lost, LAUNCHER.format(-9)) == ["rank-killed"]


def test_echoes_without_a_cause_stay() -> None:
    """No two rules may explain each other away."""
    text = "ncclRemoteError: A call failed possibly due to a network error or a remote process "
    text += "exiting prematurely."
    assert rules_of(text, TIMEOUT.format(0, 6)) == ["torch-nccl-remote", "torch-watchdog-timeout"]
