"""Is a network plugin that is there and fails told, with its own words as the cause?"""

from broadgauge.doctor.log.findings import log_findings
from broadgauge.doctor.log.reading import read_text
from broadgauge.specs.records.record import Confidence, Finding, Severity

OWN_WORDS = "cannot reach the receive data path manager"


def log(*, says_why: bool = True, nodes: int = 2) -> str:
    lines = []
    for node in range(nodes):
        head = f"node{node}:9:9 [0] "
        lines += [
            f"{head}NCCL INFO NCCL version 2.28.9+cuda12.9",
            f"{head}NCCL INFO NET/Plugin: Loaded net plugin FasTrak (v9)",
            *([f"{head}fastrak_init:77 NCCL WARN {OWN_WORDS}"] if says_why else []),
            f"{head}NCCL INFO Failed to initialize NET plugin FasTrak",
            f"{head}NCCL INFO Failed to initialize NET plugin IB",
            f"{head}NCCL INFO NET/Socket : Using [0]eth0:192.0.2.{node + 1}<0>",
            f"{head}NCCL INFO Using network Socket",
            f"{head}NCCL INFO comm 0x1 rank {node} nRanks {nodes} nNodes {nodes} localRanks 1 "
            "localRank 0 MNNVL 0",
        ]
    return "\n".join(lines)


def found(text: str) -> dict[str, Finding]:
    return {each.rule: each for each in log_findings(read_text(text))}


def test_its_own_words_are_the_cause() -> None:
    told = found(log())
    assert "nccl-warning-unknown" not in told
    finding = told["plugin-failed"]
    assert finding.severity is Severity.WARNING
    assert "FasTrak could not be initialised on ranks 0 and 1" in finding.symptom
    assert finding.cause == f"it says: {OWN_WORDS}"
    assert OWN_WORDS in str(told["network-chosen-why"].cause)


def test_without_words_the_cause_is_not_known() -> None:
    finding = found(log(says_why=False))["plugin-failed"]
    assert finding.confidence is Confidence.POSSIBLE
    assert finding.cause == "no line of its own says why"


def test_on_one_node_nothing_is_lost() -> None:
    assert found(log(nodes=1))["plugin-failed"].severity is Severity.INFO


def test_that_only_some_ranks_loaded_one_is_told() -> None:
    first, second = log().split("\nnode1", maxsplit=1)
    other = ("node1" + second).replace(
        "NET/Plugin: Loaded net plugin FasTrak (v9)", "NET/Plugin: Could not find: libnccl-net.so"
    )
    told = found(f"{first}\n{other}")["plugins-differ"]
    assert any("none: rank 1" in line for line in told.evidence)
