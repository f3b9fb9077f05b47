"""What is known of the link under a case: how fast, how full, and is the host its limit?

A link that we shape is held against its rate. One that is found has none that anybody can vouch
for: it is held against what plain TCP streams carried over it in the same launches, one and eight
at once, and nobody is blamed for want of a rate. Streams are counted so that what they carried is
never stated too high, but may be too low (agent/streams.py): "at least", in words.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from broadgauge.advise.findings.shared_cores import foreign_load_of
from broadgauge.advise.limits import LINE_SHARE, is_ceiling_low, is_host_saturated
from broadgauge.messages.vocabulary import UNDER_READ_RATIO
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.specs.networks.network import Network
from broadgauge.specs.units import show_rate, show_ratio, show_time

_NO_ROOM = "a node's cores have no room left for its network stack"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceRate:
    """What a link's bytes are held against."""

    rate_gbps: float
    """Of all NICs of a node, in the slower direction."""
    words: str
    """`200 Mbit/s`; `the 23 Gbit/s of eight plain streams`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkUse:
    """What is known of the link of a case."""

    is_found: bool
    """It was there already, and is not ours to shape."""
    rate_gbps: float | None
    """Of all NICs of a node, in the slower direction; None where unshaped or found."""
    nic_rate_gbps: float | None
    """Of one of them: what a single stream, and so the ceiling, is held against."""
    nominal_gbps: float | None
    """Of all NICs of a node by the data sheet, where it was found: shown beside what streams
    carried; no figure is computed from it."""
    ceiling_gbps: float | None
    eight_streams_gbps: float | None
    full_ratio: float | None
    """How full it was when it mattered; None where nothing is known to hold it against."""
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


def link_use_of(summary: CaseSummary, run: RunSummary, cost_s: float | None) -> LinkUse:
    """What is known of the link, from this case and from the collectives on the same network?

    `cost_s` is what the network costs a step. Where it is known, the link is as full as the share
    of it that the step's bytes take at line rate (above 1 where arithmetic hides some), but no
    fuller than in the largest collective: a training with small messages may not fill a link that
    collectives do, and where even they do not, arithmetic that hides bytes proves nothing.
    """
    network = summary.case.link
    assert network is not None
    beside = _collectives_on_same_network(summary, run)
    both = [s for s in (summary, beside) if s is not None]
    one, eight = _ceilings(both)
    reference = _reference_rate(network, one, eight)
    own, by_step = _by_step(summary, reference, cost_s)
    share, by_collective = _by_collective(beside, reference)
    words = [each for each in (by_collective,) if each]
    if own is not None:
        words.insert(len(words) if own >= LINE_SHARE else 0, by_step)
    return LinkUse(
        is_found=network.face is not None,
        rate_gbps=network.node_rate_gbps,
        nic_rate_gbps=network.slower_rate_gbps,
        nominal_gbps=network.nominal_node_gbps,
        ceiling_gbps=one,
        eight_streams_gbps=eight,
        full_ratio=min((ratio for ratio in (own, share) if ratio is not None), default=None),
        words=tuple(words),
        is_host_saturated=any(_is_mostly_saturated(s) for s in both if foreign_load_of(s) is None),
        foreign=foreign_load_of(summary),
        is_on_cpus=summary.case.device == "cpu",
    )


def _ceilings(summaries: Sequence[CaseSummary]) -> tuple[float | None, float | None]:
    """One stream's and eight streams', of the first of these that knows."""
    ones = [s.ceiling_gbps.value for s in summaries if s.ceiling_gbps is not None]
    eights = [s.eight_streams_gbps.value for s in summaries if s.eight_streams_gbps is not None]
    return (ones[0] if ones else None), (eights[0] if eights else None)


def _reference_rate(
    network: Network, one: float | None, eight: float | None
) -> ReferenceRate | None:
    """A rate that we set, or of a network that was found what plain streams carried. None: an
    unshaped link's rate is this host's, and a link that was not measured has none."""
    rate = network.node_rate_gbps
    if rate is not None:
        return ReferenceRate(rate_gbps=rate, words=show_rate(rate))
    known = [(gbps, what) for gbps, what in ((one, "one"), (eight, "eight")) if gbps is not None]
    if network.face is None or not known:
        return None
    gbps, what = max(known)
    streams = "stream" if what == "one" else "streams"
    return ReferenceRate(rate_gbps=gbps, words=f"{show_rate(gbps)} of {what} plain TCP {streams}")


def _by_step(
    summary: CaseSummary, reference: ReferenceRate | None, cost_s: float | None
) -> tuple[float | None, str]:
    """Which part of what the network costs do the step's bytes take, and that in words."""
    wire_bytes = summary.value("wire_bytes")
    if reference is None or wire_bytes is None or cost_s is None or cost_s <= 0:
        return None, ""
    wire_s = wire_bytes * 8e-9 / reference.rate_gbps
    own = wire_s / cost_s
    part = "all" if own >= 1 else show_ratio(own, 2)
    return own, (
        f"a step's bytes take {show_time(wire_s)} at {reference.words}, "
        f"{part} of the {show_time(cost_s)} that the network costs{_bias_words(summary)}"
    )


def _by_collective(
    beside: CaseSummary | None, reference: ReferenceRate | None
) -> tuple[float | None, str]:
    """How full was the link in the largest collective?"""
    if beside is None or reference is None:
        return None, ""
    rate_gbps = beside.value("link_rate_gbps")
    share = beside.value("line_share_ratio")
    if share is None and rate_gbps is not None and beside.case.link is not None:
        share = rate_gbps / reference.rate_gbps if beside.case.link.face else None
    if share is None:
        return None, ""
    whose = "the" if beside.case.link is not None and beside.case.link.face else "its"
    full = f"{show_ratio(share, 2)} of {whose} {reference.words}"
    return share, f"the link runs at {full} in the largest collective{_bias_words(beside)}"


def _bias_words(summary: CaseSummary) -> str:
    """What should be known of a statement that rests on a counter that misses bytes?"""
    kinds = {node.counted_by for record in summary.good for node in record.nodes}
    missed = max((UNDER_READ_RATIO.get(kind, 0.0) for kind in kinds if kind is not None), default=0)
    if not missed:
        return ""
    return f" (by counters of interfaces, which may miss {show_ratio(missed, 2)} of the bytes)"


def host_limit(link: LinkUse) -> str | None:
    """Why is this host the limit, rather than the network? None where it is not.

    Of a network that was found only the cores tell: what its streams carried may be the host's
    doing or its own.
    """
    if link.is_found:
        is_kept_up = link.is_on_cpus and link.is_full
        return _NO_ROOM if link.is_host_saturated and not is_kept_up else None
    if link.nic_rate_gbps is None:
        carries = (
            ""
            if link.ceiling_gbps is None
            else f" (one stream carries at least {show_rate(link.ceiling_gbps)})"
        )
        return f"the link is unshaped: this host or the library's settings are the limit{carries}"
    if link.ceiling_gbps is not None and is_ceiling_low(link.ceiling_gbps, link.nic_rate_gbps):
        return (
            f"this host's links were seen to carry only {show_rate(link.ceiling_gbps)} unshaped, "
            f"less than twice the {show_rate(link.nic_rate_gbps)} they are shaped to"
        )
    if link.is_host_saturated and not (link.is_on_cpus and link.is_full):
        return _NO_ROOM
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
