"""What is known of the link under a case: how fast, how full, and is the host its limit?"""

from dataclasses import dataclass

from broadgauge.advise.foreign import foreign_load_of
from broadgauge.advise.limits import LINE_SHARE, is_ceiling_low, is_host_saturated
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.specs.units import show_rate, show_ratio, show_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """What is known of the link of a case."""

    rate_gbps: float | None
    """Of all NICs of a node, in the slower direction; None where unshaped."""
    nic_rate_gbps: float | None
    """Of one of them: what a single stream, and so the ceiling, is held against."""
    ceiling_gbps: float | None
    full_ratio: float | None
    """How full it was when it mattered; None where unshaped or not counted."""
    words: tuple[str, ...]
    """How full it was, in words, the best first."""
    is_host_saturated: bool
    """By the job itself: not where other programs used the cores in most trials."""
    foreign: str | None
    """What other programs used of the cores in most trials, in words."""
    is_on_cpus: bool

    @property
    def is_full(self) -> bool:
        return self.full_ratio is not None and self.full_ratio >= LINE_SHARE


def link_of(summary: CaseSummary, run: RunSummary, cost_s: float | None) -> Link:
    """What is known of the link, from this case and from the collectives on the same network?

    `cost_s` is what the network costs a step. Where it is known, the link is as full as the share
    of it that the step's bytes take at line rate (above 1 where arithmetic hides some), but no
    fuller than in the largest collective: a training with small messages may not fill a link that
    collectives do, and where even they do not, arithmetic that hides bytes proves nothing.
    """
    network = summary.case.link
    assert network is not None
    beside = _collectives_on_same_network(summary, run)
    rate = network.node_rate_gbps
    share = None if beside is None or rate is None else beside.value("line_share_ratio")
    wire_bytes = summary.value("wire_bytes")
    own: float | None = None
    words = []
    if rate is not None and share is not None:
        full = f"{show_ratio(share, 2)} of its {show_rate(rate)}"
        words.append(f"the link runs at {full} in the largest collective")
    if rate is not None and wire_bytes is not None and cost_s is not None and cost_s > 0:
        wire_s = wire_bytes * 8e-9 / rate
        own = wire_s / cost_s
        part = "all" if own >= 1 else show_ratio(own, 2)
        by_step = (
            f"a step's bytes take {show_time(wire_s)} at {show_rate(rate)}, "
            f"{part} of the {show_time(cost_s)} that the network costs"
        )
        words.insert(len(words) if own >= LINE_SHARE else 0, by_step)
    both = [s for s in (summary, beside) if s is not None]
    ceilings = [s.ceiling_gbps.value for s in both if s.ceiling_gbps is not None]
    return Link(
        rate_gbps=rate,
        nic_rate_gbps=network.slower_rate_gbps,
        ceiling_gbps=ceilings[0] if ceilings else None,
        full_ratio=min((ratio for ratio in (own, share) if ratio is not None), default=None),
        words=tuple(words),
        is_host_saturated=any(_is_mostly_saturated(s) for s in both if foreign_load_of(s) is None),
        foreign=foreign_load_of(summary),
        is_on_cpus=summary.case.device == "cpu",
    )


def host_limit(link: Link) -> str | None:
    """Why is this host the limit, rather than the network emulated? None where it is not."""
    if link.nic_rate_gbps is None:
        carries = (
            "" if link.ceiling_gbps is None else f" (one stream {show_rate(link.ceiling_gbps)})"
        )
        return f"the link is unshaped: this host or the library's settings are the limit{carries}"
    if link.ceiling_gbps is not None and is_ceiling_low(link.ceiling_gbps, link.nic_rate_gbps):
        return (
            f"this host's links carry only {show_rate(link.ceiling_gbps)} unshaped, "
            f"less than twice the {show_rate(link.nic_rate_gbps)} they are shaped to"
        )
    if link.is_host_saturated and not (link.is_on_cpus and link.is_full):
        return "a node's cores have no room left for its network stack"
    return None


def _is_mostly_saturated(summary: CaseSummary) -> bool:
    """Was a node saturated in more than half of the good trials?"""
    saturated = sum(
        any(is_host_saturated(summary.case, node) for node in record.nodes)
        for record in summary.good
    )
    return saturated > summary.num_ok / 2


def _collectives_on_same_network(summary: CaseSummary, run: RunSummary) -> CaseSummary | None:
    for other in run.same_place(summary):
        case = other.case
        if case.workload.shows_link_rate and case.link == summary.case.link and other.num_ok:
            return other
    return None
