"""What do networks carry whose rates nobody can set: those of hosts, and of a cluster's pods?

A step's time is drawn against what was measured on each of them in the same run, in one way for
all: best one large all_reduce of the same ranks, which goes the way that the training goes, RDMA as
well as sockets; else plain TCP streams, which say nothing of a network that sends by RDMA.
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
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.units import show_size
from broadgauge.specs.workloads.collectives import CollectiveOp

OP: CollectiveOp = "all_reduce"
"""The only collective whose bytes are those of a ring in Gloo as in NCCL."""
LEAST_BYTES = 16 * 2**20
"""Of the all_reduce: what a smaller one takes is latency in good part, and the more so the faster
the network. At 400 Gbit/s 16 MiB take 340 microseconds."""
NORMAL_95 = 1.96
"""Half a 95 % interval in standard errors, of many launches. Of few it is more: their error is
taken for larger than it is, not for smaller."""

RateOf = Callable[[CaseSummary], NodeRate | str]
"""Of a node, or why it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRates:
    """What each network of a ladder carries, all measured in one way."""

    words: str
    """`all_reduce of 64 MiB carried`, `plain TCP streams carried`."""
    size_bytes: int
    """Of the all_reduce; 0: it is streams."""
    by_case: Mapping[str, NodeRate | str]
    """By the case's key; or why it is not known."""

    def of(self, summary: CaseSummary) -> NodeRate | str:
        """The rate of this network, or why it is not known."""
        return self.by_case[summary.case.key]

    @property
    def num_known(self) -> int:
        """Networks whose rate it says."""
        return sum(isinstance(rate, NodeRate) for rate in self.by_case.values())


def found_rates(members: Sequence[CaseSummary], run: RunSummary) -> FoundRates:
    """By the way that says it of most networks, of these by the largest all_reduce."""
    ways = (*_by_collectives(members, run), _by_streams(members))
    return max(ways, key=lambda way: (way.num_known, way.size_bytes))


def differences(members: Sequence[CaseSummary]) -> str | None:
    """In what these networks differ beside their rates, as far as it was seen; None: in nothing."""
    by_way: dict[str, list[str]] = {}
    for summary in members:
        by_way.setdefault(_way(summary), []).append(summary.case.network_name)
    parts = [f"{' and '.join(names)} {way}" for way, names in by_way.items()]
    parts = parts if len(parts) > 1 else []
    variables = _differing_variables(members)
    parts += [f"variables {' and '.join(variables)}"] if variables else []
    return f"the networks differ in more than their rate: {', '.join(parts)}" if parts else None


def _differing_variables(members: Sequence[CaseSummary]) -> list[str]:
    """Of the networks' own, but those that only say which interface it is."""
    given = [{} if s.case.link is None else s.case.link.environment for s in members]
    names = sorted({name for each in given for name in each} - _INTERFACES)
    return [name for name in names if len({each.get(name) for each in given}) > 1]


_INTERFACES = {"NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "NCCL_IB_HCA"}


def _way(summary: CaseSummary) -> str:
    """`by RoCE with GPUDirect`: what was asked for, else what NCCL's log says."""
    link = summary.case.link
    face = None if link is None else link.face
    nics = "" if link is None or link.num_face_nics == 1 else f" over {link.num_face_nics} NICs"
    if face is not None and face.transport_words is not None:
        return f"by {face.transport_words}{nics}"
    if summary.case.backend == "gloo" or _is_by_sockets(summary):
        return f"by sockets{nics}"
    networks = {record.nccl.network for record in summary.good if record.nccl is not None}
    seen = sorted(each for each in networks if each is not None)
    way = f"by NCCL's {' and '.join(seen)}" if seen else "by what NCCL chose, which is not known"
    return f"{way}{nics}"


def _by_collectives(members: Sequence[CaseSummary], run: RunSummary) -> Iterator[FoundRates]:
    """One for each all_reduce that is large enough: of a workload, at a size, in a data type."""
    measured = [dict(_all_reduces(summary, run)) for summary in members]
    for key in dict.fromkeys(key for rows in measured for key in rows):
        words = f"{OP} of {show_size(key.size_bytes)}"
        rates = {
            summary.case.key: _rate_of_row(summary, rows[key])
            if key in rows
            else f"no {words} was measured on it"
            for summary, rows in zip(members, measured, strict=True)
        }
        yield FoundRates(words=f"{words} carried", size_bytes=key.size_bytes, by_case=rates)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Message:
    """What is the same on all networks."""

    workload: str
    engine: str
    dtype: str
    size_bytes: int


def _all_reduces(
    summary: CaseSummary, run: RunSummary
) -> Iterator[tuple[_Message, CollectiveSummary]]:
    """Those on the same network and among the same ranks."""
    for other in run.same_place(summary):
        case = other.case
        if not case.workload.shows_link_rate or case.link != summary.case.link:
            continue
        for row in other.collectives:
            if row.op == OP and row.size_bytes >= LEAST_BYTES:
                message = _Message(
                    workload=case.workload.name,
                    engine=row.engine,
                    dtype=row.dtype,
                    size_bytes=row.size_bytes,
                )
                yield message, row


def _rate_of_row(summary: CaseSummary, row: CollectiveSummary) -> NodeRate | str:
    """Bytes of a ring over the time, as nccl-tests' busbw: they leave a node once."""
    case = summary.case
    node_bytes = ring_node_bytes(
        OP, case.world_size, row.size_bytes, ranks_per_node=case.ranks_per_node
    )
    gbps = node_bytes * 8e-9 / row.time_s.value
    return _node_rate(summary, gbps, gbps, row.time_s)


def _by_streams(members: Sequence[CaseSummary]) -> FoundRates:
    return FoundRates(
        words="plain TCP streams carried",
        size_bytes=0,
        by_case={summary.case.key: _rate_of_streams(summary) for summary in members},
    )


def _rate_of_streams(summary: CaseSummary) -> NodeRate | str:
    face = None if summary.case.link is None else summary.case.link.face
    if face is not None and face.is_rdma:
        return f"plain TCP streams say nothing of {face.transport_words}: {_ADD}"
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


_ADD = f"an {OP} of {show_size(LEAST_BYTES)} or more beside it would"


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
