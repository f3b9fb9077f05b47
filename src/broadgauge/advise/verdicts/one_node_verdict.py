"""What does a case wait for whose ranks are all on one node?

A path inside the node is compared with the fastest one of the same run, workload and shape: the
fastest as measured, since which one that is differs between machines.
"""

from broadgauge.advise.findings.shared_cores import foreign_words
from broadgauge.advise.limits import FEWEST_LAUNCHES
from broadgauge.advise.pairs.slow_pairs_over_launches import judged_pairs
from broadgauge.advise.verdicts.share_threshold import (
    across_words,
    few_launches,
    percent,
    side_of,
    sign_disagreement,
)
from broadgauge.advise.verdicts.verdict import Bound, Verdict, verdict_that
from broadgauge.results.comparing.compare_cases import compare_cases, direction_of, headline_metrics
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.units import show_count


def verdict_on_one_node(summary: CaseSummary, run: RunSummary) -> Verdict:
    """The bound with what shows which path was used."""
    bound, why = bound_on_one_node(summary, run)
    return verdict_that(bound, why, (*path_evidence(summary), *foreign_words(summary)))


def bound_on_one_node(summary: CaseSummary, run: RunSummary) -> tuple[Bound, str]:
    """The bound, and why."""
    if summary.case.world_size == 1:
        return Bound.COMPUTE, "one rank, no communication"
    bound, why = _bound(summary)
    if summary.case.path is None:
        return bound, why
    pairs = judged_pairs(summary)
    slow = "" if pairs is None else pairs.words
    few = few_launches(next(iter(summary.estimates.values()), None))
    against = _against_fastest_path(summary, run)
    return bound, "; ".join(part for part in (why, against, slow, few) if part)


def _bound(summary: CaseSummary) -> tuple[Bound, str]:
    share = summary.estimates.get("network_share_ratio")
    if share is not None:
        noise = sign_disagreement(summary)
        if noise is not None:
            return Bound.UNKNOWN, noise
        words = f"{percent(share)} of each step waits for communication inside the node"
        side = side_of(share)
        if side is None:
            return Bound.UNKNOWN, f"{words}{across_words(share)}"
        return (Bound.COMPUTE if side == "below" else Bound.HOST), words
    if summary.case.path is not None and summary.case.workload.only_communicates:
        return Bound.HOST, "collectives do nothing but wait for this path inside the node"
    return Bound.UNKNOWN, (
        "one node, no network between the ranks; their communication was not measured apart"
    )


def path_evidence(summary: CaseSummary) -> tuple[str, ...]:
    """Which path was really used, and what says so; nothing where nothing was sent."""
    seen = [record.path for record in summary.good if record.path is not None]
    lines = []
    for used in dict.fromkeys(path.used for path in seen):
        channels = [p.channels_count for p in seen if p.used == used and p.channels_count]
        over = f" over {max(channels)} channels" if channels else ""
        count = sum(path.used == used for path in seen)
        lines.append(f"{used}{over}, in {count} of {len(seen)} trials")
        shown = next(path.evidence for path in seen if path.used == used)
        lines.extend(shown[:2])
    return tuple(lines)


def _against_fastest_path(summary: CaseSummary, run: RunSummary) -> str:
    """`0.12 times as fast as over nvlink`; nothing where no other path ran."""
    metric = next(iter(headline_metrics(summary)), None)
    paths = (peer for peer in run.same_work(summary) if peer.case.path is not None)
    peers = [peer for peer in paths if metric in peer.estimates]
    if metric is None or len(peers) < 2 or summary not in peers:
        return ""
    is_lower_better = direction_of(summary, metric) == "lower"
    fastest = (min if is_lower_better else max)(
        peers, key=lambda peer: peer.estimates[metric].value
    )
    if fastest is summary:
        return f"the fastest of {len(peers)} paths"
    row = compare_cases(fastest, summary, metric)
    if row is None or row.comparison is None:
        return ""
    times = _times_as_fast(row.comparison.ratio, is_inverted=is_lower_better)
    return f"{times} times as fast as over {fastest.case.network_name}"


def _times_as_fast(ratio: Estimate, *, is_inverted: bool) -> str:
    """`0.12 (0.11 to 0.13)`."""
    ends = [ratio.low, ratio.high]
    if is_inverted:
        ends = [None if end is None else 1 / end for end in (ratio.high, ratio.low)]
    value = 1 / ratio.value if is_inverted else ratio.value
    low, high = ends
    if low is None or high is None or ratio.launches < FEWEST_LAUNCHES:
        return show_count(value)
    return f"{show_count(value)} ({show_count(low)} to {show_count(high)})"
