"""Does Gloo give the same on different wires? Then it is the limit, and none of the wires.

A published example: 0.86 GB/s busbw of two nodes over 25GbE and over HDR alike, where NCCL gave
1.62 and 11.6 ("The Impact of GPU Networking (Part 1)", 2025-03-14). Whoever compares networks by
such figures finds no difference, and there is one.
"""

from collections.abc import Iterator
from itertools import combinations

from broadgauge.advise.findings.case_finding import CaseFinding
from broadgauge.advise.limits import BACKEND_WIRE_RATIO, DIFFERENT_WIRES, SAME_ENGINE_RATIO
from broadgauge.results.comparing.compare_cases import compare_in_blocks, metric_of
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.records.record import Confidence, Finding, Severity
from broadgauge.specs.units import show_bandwidth, show_rate, show_ratio

_METRIC = "busbw_gbyte_per_s"


def backend_bound(run: RunSummary) -> Iterator[CaseFinding]:
    """One finding for the cases of one workload and shape that differ in their wire alone."""
    told: set[str] = set()
    for summary in run.candidates:
        if summary.case.key in told or not _is_judged(summary):
            continue
        peers = [each for each in run.same_work(summary) if _is_judged(each)]
        equal = [pair for pair in combinations(peers, 2) if _is_bound(*pair)]
        cases = {each.case.key: each for pair in equal for each in pair}
        told |= {each.case.key for each in peers}
        if equal:
            yield _finding(tuple(cases.values()), _ratio(*equal[0]))


def _is_judged(summary: CaseSummary) -> bool:
    is_gloo = summary.case.backend == "gloo" and summary.case.workload.only_communicates
    return is_gloo and _wire_gbps(summary) is not None and _METRIC in summary.estimates


def _wire_gbps(summary: CaseSummary) -> float | None:
    network = summary.case.link
    return None if network is None else network.node_rate_gbps


def _is_bound(a: CaseSummary, b: CaseSummary) -> bool:
    """Wires that differ twofold, figures that don't, and both far below the slower wire?"""
    slower, faster = sorted((_wire_gbps(a) or 0.0, _wire_gbps(b) or 0.0))
    if slower <= 0 or faster < DIFFERENT_WIRES * slower:
        return False
    most_gbps = 8 * max(a.estimates[_METRIC].value, b.estimates[_METRIC].value)
    return most_gbps < BACKEND_WIRE_RATIO * slower and _is_equal(_ratio(a, b))


def _ratio(a: CaseSummary, b: CaseSummary) -> Estimate | None:
    comparison, _ = compare_in_blocks(a, b, metric_of(_METRIC))
    return None if comparison is None else comparison.ratio


def _is_equal(ratio: Estimate | None) -> bool:
    """Within a tenth, by the whole interval where there is one."""
    if ratio is None:
        return False
    low, high = ratio.low, ratio.high
    if low is None or high is None:
        low = high = ratio.value
    return low >= 1 - SAME_ENGINE_RATIO and high <= 1 + SAME_ENGINE_RATIO


def _finding(cases: tuple[CaseSummary, ...], ratio: Estimate | None) -> CaseFinding:
    is_sure = ratio is not None and ratio.low is not None
    on_gpus = cases[0].case.device == "cuda"
    return CaseFinding(
        cases=cases,
        finding=Finding(
            rule="backend-bound",
            severity=Severity.WARNING,
            symptom="Gloo is equally fast on different networks, and far below each of them",
            evidence=tuple(map(_line, cases)),
            cause=(
                "Gloo's own work on the processors is the limit, not the wire: these figures say "
                "nothing of the networks"
            ),
            fix=(
                "compare networks with `backend: nccl`"
                if on_gpus
                else "more ranks a node, or longer messages; NCCL on GPUs shows the wire"
            ),
            confidence=Confidence.LIKELY if is_sure else Confidence.POSSIBLE,
        ),
    )


def _line(summary: CaseSummary) -> str:
    value, wire_gbps = summary.estimates[_METRIC].value, _wire_gbps(summary)
    assert wire_gbps is not None
    return (
        f"{summary.case.network_name}: {show_bandwidth(value)} busbw, "
        f"{show_ratio(8 * value / wire_gbps, 2)} of {show_rate(wire_gbps)}"
    )
