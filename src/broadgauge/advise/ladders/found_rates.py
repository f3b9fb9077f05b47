"""What do networks carry whose rates nobody can set: those of hosts, and of a cluster's pods?

A step's time is drawn against what was measured on each of them in the same run, in one way for
all: best the largest collective of the same ranks, which goes the way that the training goes, RDMA
as well as sockets; else plain TCP streams, which say nothing of a network that sends by RDMA.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from broadgauge.advise.ladders.ladder import (
    NodeRate,
    carried_gbps,
    carried_payload_gbps,
    is_one_stream_most,
)
from broadgauge.catalog.traffic import ring_node_bytes
from broadgauge.predict.sensitivity.ladder import RATE_ERROR_RATIO
from broadgauge.results.model import CaseSummary, CollectiveSummary, RunSummary
from broadgauge.specs.collectives import CollectiveOp
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.transports import NAMES
from broadgauge.specs.units import show_size

LEAST_BYTES = 10**6
"""Of the collective: what a smaller one takes is latency, and no rate."""
NORMAL_95 = 1.96
"""Half a 95 % interval in standard errors, of many launches. Of few it is more: their error is
taken for larger than it is, not for smaller."""

RateOf = Callable[[CaseSummary], NodeRate | str]
"""Of a node, or why it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRates:
    """What each network of a ladder carries, all measured in one way."""

    words: str
    """`all_reduce of 67.1 MB carried`, `plain TCP streams carried`."""
    by_case: Mapping[str, NodeRate | str]
    """By the case's key; or why it is not known."""

    def of(self, summary: CaseSummary) -> NodeRate | str:
        """The rate of this network, or why it is not known."""
        return self.by_case[summary.case.key]


def found_rates(members: Sequence[CaseSummary], run: RunSummary) -> FoundRates:
    """By collectives, unless streams are known of more networks."""
    ways = [*_by_collectives(members, run), _by_streams(members)]
    return max(ways, key=lambda way: sum(isinstance(r, NodeRate) for r in way.by_case.values()))


def differences(members: Sequence[CaseSummary]) -> str | None:
    """In what these networks differ beside their rates, as far as it was seen; None: in nothing."""
    ways = {summary.case.network_name: _way(summary) for summary in members}
    if len(set(ways.values())) < 2:
        return None
    by_way: dict[str, list[str]] = {}
    for name, way in ways.items():
        by_way.setdefault(way, []).append(name)
    parts = [f"{' and '.join(names)} {way}" for way, names in by_way.items()]
    return f"the networks differ in more than their rate: {', '.join(parts)}"


def _way(summary: CaseSummary) -> str:
    """`by RoCE`: what was asked for, else what NCCL's log says."""
    face = None if summary.case.link is None else summary.case.link.face
    if face is not None and face.transport is not None:
        return f"by {NAMES[face.transport]}"
    if summary.case.backend == "gloo" or _is_by_sockets(summary):
        return "by sockets"
    networks = {record.nccl.network for record in summary.good if record.nccl is not None}
    seen = sorted(each for each in networks if each is not None)
    return f"by NCCL's {' and '.join(seen)}" if seen else "by what NCCL chose, which is not known"


def _by_collectives(members: Sequence[CaseSummary], run: RunSummary) -> Iterator[FoundRates]:
    """One for each workload of collectives."""
    beside = [_collectives(summary, run) for summary in members]
    for name in dict.fromkeys(name for each in beside for name in each):
        rates: dict[str, NodeRate | str] = {}
        words = ""
        for summary, collectives in zip(members, beside, strict=True):
            found = collectives.get(name)
            row = None if found is None else _largest(found)
            rates[summary.case.key] = _rate_of_row(summary, row)
            if row is not None:
                words = f"{row.op} of {show_size(row.size_bytes)} carried"
        yield FoundRates(words=words, by_case=rates)


def _collectives(summary: CaseSummary, run: RunSummary) -> dict[str, CaseSummary]:
    """Those on the same network and among the same ranks, by their workload's name."""
    case = summary.case
    return {
        other.case.workload.name: other
        for other in run.same_place(summary)
        if other.case.workload.shows_link_rate
        and other.case.link == case.link
        and other.collectives
    }


def _largest(summary: CaseSummary) -> CollectiveSummary:
    """Its largest all_reduce, else the largest of its first op."""
    ops = [row.op for row in summary.collectives]
    op = "all_reduce" if "all_reduce" in ops else ops[0]
    return max((row for row in summary.collectives if row.op == op), key=lambda r: r.size_bytes)


def _rate_of_row(summary: CaseSummary, row: CollectiveSummary | None) -> NodeRate | str:
    """Bytes of a ring over the time, as nccl-tests' busbw: they leave a node once."""
    if row is None:
        return "no collective was measured on it that would say what it carries"
    if row.size_bytes < LEAST_BYTES:
        return (
            f"its largest {row.op} of {show_size(row.size_bytes)} is too small to say what it "
            f"carries: {show_size(LEAST_BYTES)} at least"
        )
    case = summary.case
    op: CollectiveOp = row.op  # type: ignore[assignment]  # validated by its record
    node_bytes = ring_node_bytes(
        op, case.world_size, row.size_bytes, ranks_per_node=case.ranks_per_node
    )
    gbps = node_bytes * 8e-9 / row.time_s.value
    return _node_rate(summary, gbps, gbps, row.time_s)


def _by_streams(members: Sequence[CaseSummary]) -> FoundRates:
    return FoundRates(
        words="plain TCP streams carried",
        by_case={summary.case.key: _rate_of_streams(summary) for summary in members},
    )


def _rate_of_streams(summary: CaseSummary) -> NodeRate | str:
    face = None if summary.case.link is None else summary.case.link.face
    if face is not None and face.is_rdma:
        return f"plain TCP streams say nothing of {NAMES[face.transport]}: {_ADD}"  # type: ignore[index]
    is_sockets = summary.case.backend == "gloo" or (face is not None and face.is_sockets)
    if not is_sockets and not _is_by_sockets(summary):
        return f"plain TCP streams say nothing of it, as NCCL may have sent by RDMA: {_ADD}"
    gbps, payload_gbps = carried_gbps(summary), carried_payload_gbps(summary)
    if gbps is None or payload_gbps is None:
        return f"what it carries was not measured: {_ADD}"
    of_one = is_one_stream_most(summary)
    measured = summary.ceiling_gbps if of_one else summary.eight_streams_gbps
    assert measured is not None, "one of them is the most"
    return _node_rate(summary, gbps, payload_gbps, measured)


_ADD = "a workload of `kind: collectives` beside it would"


def _is_by_sockets(summary: CaseSummary) -> bool:
    """By NCCL's logs of all trials."""
    networks = [None if r.nccl is None else r.nccl.network for r in summary.good]
    return bool(networks) and all(each == "Socket" for each in networks)


def _node_rate(
    summary: CaseSummary, rate_gbps: float, payload_gbps: float, measured: Estimate
) -> NodeRate | str:
    """With how far it may be off: not less than a rate that is set. Without an interval it is not
    known, unless nothing has one."""
    half = measured.half_width_ratio
    if half is None and len({record.launch_id for record in summary.good}) > measured.launches:
        return f"what it carries was measured in {measured.launches} launches, too few for a rate"
    return NodeRate(
        rate_gbps=rate_gbps,
        payload_gbps=payload_gbps,
        error_ratio=max(RATE_ERROR_RATIO, 0.0 if half is None else half / NORMAL_95),
    )
