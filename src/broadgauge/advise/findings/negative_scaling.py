"""Do more nodes or ranks do less work in a second than fewer?

A published example: 21.34 samples/s on one node, 3.46 on two over a pod network ("Accelerate model
training on OpenShift AI with NVIDIA GPUDirect RDMA", 2025).
"""

from collections.abc import Iterator

from broadgauge.advise.findings.case_finding import CaseFinding
from broadgauge.advise.limits import NEGATIVE_SCALING_RATIO, NETWORK_SHARE
from broadgauge.results.comparing.compare_cases import compare_in_blocks, metric_of
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.records.record import Confidence, Finding, Severity
from broadgauge.specs.units import show_count, show_ratio

_METRICS = ("tokens_per_s", "samples_per_s")
"""Of all ranks together; the first that both cases have."""


def negative_scaling(run: RunSummary) -> Iterator[CaseFinding]:
    """For each case the fewer ranks that do most, where they do more than it does."""
    for summary in run.candidates:
        metric = next((each for each in _METRICS if each in summary.estimates), None)
        if metric is None:
            continue
        fewer = [each for each in run.candidates if _is_fewer(each, summary, metric)]
        best = max(fewer, key=lambda each: each.estimates[metric].value, default=None)
        if best is None:
            continue
        comparison, _ = compare_in_blocks(best, summary, metric_of(metric))
        if comparison is not None and _is_slower(comparison.ratio):
            yield _finding(best, summary, metric, comparison.ratio)


def _is_fewer(other: CaseSummary, summary: CaseSummary, metric: str) -> bool:
    """The same work on fewer ranks, on the same network or on one node."""
    a, b = other.case, summary.case
    is_same = (a.workload, a.device, a.backend, a.platform) == (
        b.workload,
        b.device,
        b.backend,
        b.platform,
    )
    on_same = a.nodes == 1 or a.network == b.network
    return is_same and on_same and a.world_size < b.world_size and metric in other.estimates


def _is_slower(ratio: Estimate) -> bool:
    """Beyond chance by the interval; of one launch, by so much that chance is no explanation."""
    if ratio.high is None:
        return ratio.value < NEGATIVE_SCALING_RATIO
    return ratio.high < 1


def _finding(fewer: CaseSummary, more: CaseSummary, metric: str, ratio: Estimate) -> CaseFinding:
    share = more.estimates.get("network_share_ratio")
    waits = share is not None and share.value >= NETWORK_SHARE
    is_sure = waits and ratio.high is not None
    what = "tokens" if metric == "tokens_per_s" else "samples"
    share_words = () if share is None else (f"{show_ratio(share.value)} of a step is the network",)
    times = f"{1 / ratio.value:.3g}" if ratio.value > 0 else "many"
    return CaseFinding(
        cases=(fewer, more),
        finding=Finding(
            rule="negative-scaling",
            severity=Severity.WARNING,
            symptom=(
                f"{more.case.label} does fewer {what} in a second than {fewer.case.label}: "
                f"{show_count(more.estimates[metric].value)} instead of "
                f"{show_count(fewer.estimates[metric].value)}"
            ),
            evidence=(
                f"{_ratio_words(ratio)} times the {metric} of {fewer.case.shape}",
                *share_words,
            ),
            cause=(
                "a step waits longer for the network than the added ranks save"
                if waits
                else "what the added ranks save, each step loses again: most often to the network"
            ),
            fix=(
                f"{fewer.case.shape} is {times} times as fast: use it, or a faster network, a "
                "larger batch or gradient accumulation, and measure again"
            ),
            confidence=Confidence.LIKELY if is_sure else Confidence.POSSIBLE,
        ),
    )


def _ratio_words(ratio: Estimate) -> str:
    if ratio.low is None or ratio.high is None:
        return f"{ratio.value:.3g} (one launch)"
    return f"{ratio.value:.3g} ({ratio.low:.3g} to {ratio.high:.3g})"
