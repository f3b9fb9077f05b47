"""What does a case wait for most: the network, this host, or its own arithmetic?

A training with several nodes is judged by its network share, network_cost_s / step_time_s:

1. Unknown share, or an interval across 30 %: unknown.
2. Share below 30 %: compute-bound. A network of infinite speed would make the step 1 / (1 - share)
   times as fast, so below 30 % no network at all gives 1.43 times.
3. Share above, and the host is the limit: host-bound. That is an unshaped link (what it carries is
   this host), a ceiling below twice the shaped rate, or nodes without a core left for the network
   stack (judge.is_host_saturated; for a training on CPUs also the collectives on that network).
4. Share above, and the link is full: network-bound. Full is 80 % of the line rate by counters in
   the largest collective on the same network; without one, when the step's bytes at line rate take
   80 % of the time that the network costs.
5. Share above, link not full, host idle: unknown. Latency or the library's settings are left.

With three launches or more the whole interval has to lie on one side of 30 %; with fewer the point
estimate decides, and the sentence says so. Nothing here compares runs.
"""

from dataclasses import dataclass

from broadgauge.advise.judge import CEILING_OVER_RATE, LINE_SHARE, is_host_saturated
from broadgauge.advise.model import Bound, Verdict
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.units import show_rate, show_ratio, show_time
from broadgauge.specs.workload import CollectivesWorkload

NETWORK_SHARE = 0.3
FEWEST_LAUNCHES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Link:
    """What is known of the link of a case."""

    rate_gbps: float | None
    ceiling_gbps: float | None
    full_ratio: float | None
    """How full it was when it mattered; None where unshaped or not counted."""
    full_words: str
    is_host_saturated: bool


def verdict(summary: CaseSummary, run: RunSummary) -> Verdict:
    """What does this case wait for most?"""
    if not summary.num_ok:
        why = (
            f"all {summary.num_failed} trials failed" if summary.num_failed else "not measured yet"
        )
        return _verdict(Bound.UNKNOWN, why)
    if summary.case.network is None:
        return _one_node(summary)
    link = _link(summary, run)
    if isinstance(summary.case.workload, CollectivesWorkload):
        return _collectives(summary, link)
    share, words = _network_share(summary)
    evidence = _evidence(summary, link, share)
    is_slower, slower_words = _slower_than_one_node(summary)
    bound, why = _bound(share, words, link)
    sentence = "; ".join(part for part in (why, slower_words, _few_launches(share)) if part)
    return _verdict(bound, sentence, evidence, is_slower=is_slower)


def _verdict(
    bound: Bound,
    why: str,
    evidence: tuple[str, ...] = (),
    *,
    is_slower: bool | None = None,
) -> Verdict:
    return Verdict(
        bound=bound,
        is_slower_than_one_node=is_slower,
        sentence=f"{bound.value}: {why}",
        evidence=evidence,
    )


def _bound(share: Estimate | None, words: str, link: _Link) -> tuple[Bound, str]:
    """The rules of the module's docstring, in their order."""
    if share is None:
        return Bound.UNKNOWN, words
    side = _side(share)
    if side is None:
        return Bound.UNKNOWN, f"{words}, on both sides of {show_ratio(NETWORK_SHARE)}"
    if side == "below":
        return Bound.COMPUTE, words
    host = _host_limit(link)
    if host is not None:
        return Bound.HOST, f"{words}; {host}"
    if link.full_ratio is not None and link.full_ratio >= LINE_SHARE:
        return Bound.NETWORK, f"{words}; {link.full_words}"
    full = "the link's bytes were not counted" if link.full_ratio is None else link.full_words
    return Bound.UNKNOWN, (
        f"{words}; {full}, and the host is not at its limit: "
        "latency or the library's settings are left"
    )


def _side(share: Estimate) -> str | None:
    """On which side of the threshold does the share lie? None: on both."""
    low, high = share.low, share.high
    if low is None or high is None or share.launches < FEWEST_LAUNCHES:
        low = high = share.value
    if low >= NETWORK_SHARE:
        return "above"
    return "below" if high < NETWORK_SHARE else None


def _host_limit(link: _Link) -> str | None:
    """Why is this host the limit, rather than the network emulated? None where it is not."""
    if link.rate_gbps is None:
        carries = (
            "" if link.ceiling_gbps is None else f" (one stream {show_rate(link.ceiling_gbps)})"
        )
        return f"the link is unshaped, so this is what the host itself carries{carries}"
    if link.ceiling_gbps is not None and link.ceiling_gbps < CEILING_OVER_RATE * link.rate_gbps:
        return (
            f"this host's links carry only {show_rate(link.ceiling_gbps)} unshaped, "
            f"less than twice the {show_rate(link.rate_gbps)} they are shaped to"
        )
    if link.is_host_saturated:
        return "a node's cores have no room left for its network stack"
    return None


def _network_share(summary: CaseSummary) -> tuple[Estimate | None, str]:
    """Which share of a step does the network cost, and how was that had?

    Without a measurement with communication off, what is lost against the smallest shape at equal
    work per rank stands in for it: 1 - scaling efficiency.
    """
    share = summary.estimates.get("network_share_ratio")
    if share is not None:
        return share, f"{_percent(share)} of each step waits for the network"
    if summary.scaling is None:
        reason = summary.missing.get("network_share_ratio", "not measured with communication off")
        return None, f"the network's share of a step is not known ({reason})"
    kept = summary.scaling.efficiency
    lost = Estimate(
        value=1 - kept.value,
        low=None if kept.high is None else 1 - kept.high,
        high=None if kept.low is None else 1 - kept.low,
        launches=kept.launches,
        trials=kept.trials,
        method=f"1 - scaling efficiency; {kept.method}",
    )
    reference = summary.scaling.reference.shape
    return lost, f"a rank gives {_percent(lost)} less than at {reference}"


def _percent(share: Estimate) -> str:
    """`81 %`, or with its interval where that is wider than one point: `40 % (36–44 %)`."""
    if share.value < 0.005:
        return "less than 1 %"
    text = f"{100 * share.value:.0f}"
    if share.low is None or share.high is None or share.high - share.low < 0.02:
        return f"{text} %"
    return f"{text} % ({100 * share.low:.0f} to {100 * share.high:.0f} %)"


def _link(summary: CaseSummary, run: RunSummary) -> _Link:
    """What is known of the link, from this case and from the collectives on the same network?"""
    network = summary.case.network
    assert network is not None
    collectives = _collectives_on_same_network(summary, run)
    full, words = _fullness(summary, collectives)
    ceilings = [c for s in (summary, collectives) if s is not None and (c := s.ceiling_gbps)]
    return _Link(
        rate_gbps=network.rate_gbps,
        ceiling_gbps=ceilings[0].value if ceilings else None,
        full_ratio=full,
        full_words=words,
        is_host_saturated=any(
            _is_mostly_saturated(s) for s in (summary, collectives) if s is not None
        ),
    )


def _is_mostly_saturated(summary: CaseSummary) -> bool:
    """Was a node saturated in more than half of the good trials?"""
    saturated = sum(
        any(is_host_saturated(summary.case, node) for node in record.nodes)
        for record in summary.good
    )
    return saturated > summary.num_ok / 2


def _collectives_on_same_network(summary: CaseSummary, run: RunSummary) -> CaseSummary | None:
    for other in run.cases:
        case = other.case
        if (
            isinstance(case.workload, CollectivesWorkload)
            and case.network == summary.case.network
            and case.shape == summary.case.shape
            and other.num_ok
        ):
            return other
    return None


def _fullness(summary: CaseSummary, collectives: CaseSummary | None) -> tuple[float | None, str]:
    """How full is the link while the ranks wait for it, by its counters?"""
    network = summary.case.network
    rate = None if network is None else network.rate_gbps
    if rate is None:
        return None, ""
    share = None if collectives is None else collectives.value("line_share_ratio")
    if share is not None:
        return share, f"the link runs at {show_ratio(share, 2)} of its {show_rate(rate)}"
    wire_bytes, cost_s = summary.value("wire_bytes"), summary.value("network_cost_s")
    if wire_bytes is None or cost_s is None or cost_s <= 0:
        return None, ""
    wire_s = wire_bytes * 8e-9 / rate
    return wire_s / cost_s, (
        f"a step's bytes take {show_time(wire_s)} at {show_rate(rate)}, "
        f"of {show_time(cost_s)} that the network costs"
    )


def _slower_than_one_node(summary: CaseSummary) -> tuple[bool | None, str]:
    """Do these nodes together give less than the one? Only where the interval tells."""
    scaling = summary.scaling
    if scaling is None or scaling.reference.nodes != 1 or summary.case.nodes == 1:
        return None, ""
    low, high = scaling.speedup.low, scaling.speedup.high
    if low is None or high is None or scaling.speedup.launches < FEWEST_LAUNCHES:
        return None, ""
    if high >= 1:
        return (False if low >= 1 else None), ""
    one = "one" if scaling.reference.world_size == 1 else f"one of {scaling.reference.shape}"
    nodes = {2: "two", 3: "three", 4: "four"}.get(summary.case.nodes, str(summary.case.nodes))
    return True, f"{nodes} nodes are slower than {one}: {scaling.speedup.value:.2f} times as fast"


def _few_launches(share: Estimate | None) -> str:
    if share is None or share.launches >= FEWEST_LAUNCHES:
        return ""
    return f"from only {share.launches} launch{'' if share.launches == 1 else 'es'}"


def _one_node(summary: CaseSummary) -> Verdict:
    """All ranks on one node: no network is between them."""
    share = summary.estimates.get("network_share_ratio")
    if summary.case.world_size == 1 or share is None or _side(share) == "below":
        return _verdict(Bound.COMPUTE, "one node, no network between the ranks")
    words = f"{_percent(share)} of each step waits for communication inside the node"
    return _verdict(Bound.HOST if _side(share) == "above" else Bound.UNKNOWN, words)


def _collectives(summary: CaseSummary, link: _Link) -> Verdict:
    """Collectives do nothing but wait: only what fills is asked."""
    host = _host_limit(link)
    evidence = _evidence(summary, link, None)
    if host is not None:
        return _verdict(Bound.HOST, host, evidence)
    if link.full_ratio is not None and link.full_ratio >= LINE_SHARE:
        return _verdict(Bound.NETWORK, link.full_words, evidence)
    return _verdict(Bound.UNKNOWN, link.full_words or "the link's bytes were not counted", evidence)


def _evidence(summary: CaseSummary, link: _Link, share: Estimate | None) -> tuple[str, ...]:
    """Figures that lead to the sentence."""
    lines: list[str] = []
    step, off = summary.value("step_time_s"), summary.value("step_without_communication_s")
    if step is not None and off is not None:
        lines.append(f"a step takes {show_time(step)}, without communication {show_time(off)}")
    if share is not None and share.low is not None and share.high is not None:
        low, high = show_ratio(share.low), show_ratio(share.high)
        lines.append(f"network share {show_ratio(share.value)}, 95 % interval {low} to {high}")
    if link.full_words:
        lines.append(link.full_words)
    if link.ceiling_gbps is not None:
        lines.append(f"unshaped, one TCP stream carries {show_rate(link.ceiling_gbps)}")
    elif link.rate_gbps is not None:
        lines.append("what this host carries unshaped was not measured")
    busy = summary.value("cpu_busy_ratio")
    if busy is not None:
        lines.append(f"{show_ratio(busy)} of the busiest node's cores were busy")
    if summary.scaling is not None:
        efficiency = show_ratio(summary.scaling.efficiency.value)
        lines.append(f"scaling efficiency {efficiency} of {summary.scaling.reference.shape}")
    return tuple(lines)
