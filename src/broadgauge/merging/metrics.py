"""How does a trial's measurement get its metrics, each a number or a reason why there is none?"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from broadgauge.merging.counters import MarkedInterval, nodes_use, total_of
from broadgauge.specs.case import Case
from broadgauge.specs.records.file_access_row import FileAccessRow
from broadgauge.specs.records.op_rows import AnyOpRow
from broadgauge.specs.records.record import Measurement, NodeUse, TrialError

NO_CORES = "the kernel does not show the nodes' cores (/proc/stat), as under lxcfs"
ONE_RANK = "one rank: no communication"
ONE_NODE = "one node: no link between nodes"
NO_COUNTERS = "the link's counters were not read"
UNSHAPED = "the network has no line rate: unshaped"
FOUND = "the network was found: it has no line rate that we set"

Series = dict[str, tuple[tuple[float, ...], ...] | tuple[float | None, ...]]


@dataclass(kw_only=True, slots=True)
class MeasurementBuilder:
    """What one kind of workload found; `measurement()` makes the record's part of it."""

    metrics: dict[str, float | None] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    collectives: tuple[AnyOpRow, ...] = ()
    file_accesses: tuple[FileAccessRow, ...] = ()
    nodes: tuple[NodeUse, ...] = ()
    data: str | None = None
    series: Series = field(default_factory=dict)
    error: TrialError | None = None
    metric_ranks: dict[str, int] = field(default_factory=dict)
    """Whose lines a command's metric was read from."""

    def put(self, name: str, value: float | None, reason: str = "not measured") -> None:
        """A metric's value, or why it is null."""
        self.metrics[name] = value
        if value is None:
            self.missing[name] = reason

    def measurement(self) -> Measurement:
        return Measurement(
            metrics=self.metrics,
            missing=self.missing,
            collectives=self.collectives,
            file_accesses=self.file_accesses,
            nodes=self.nodes,
            data=self.data,
            metric_ranks=self.metric_ranks,
        )


def put_link(
    found: MeasurementBuilder, case: Case, wire_bytes: float | None, time_s: float | None
) -> None:
    """How fast was the link used? Its rate, and its share of the network's line rate."""
    reason = why_no_traffic(case)
    rate_gbps = None if wire_bytes is None or not time_s else wire_bytes * 8 / time_s / 1e9
    line_gbps = None if case.link is None else case.link.node_rate_gbps
    share = None if rate_gbps is None or line_gbps is None else rate_gbps / line_gbps
    found.put("wire_bytes", wire_bytes, reason)
    found.put("link_rate_gbps", rate_gbps, reason)
    no_rate = FOUND if case.link is not None and case.link.face else UNSHAPED
    found.put("line_share_ratio", share, reason if rate_gbps is None else no_rate)


def put_nodes(found: MeasurementBuilder, case: Case, intervals: Sequence[MarkedInterval]) -> None:
    """What did the nodes use in the measured part?"""
    put_cores(found, intervals)
    nodes, reason = found.nodes, why_no_traffic(case)
    sent_bytes = _total([node.tx_bytes for node in nodes])
    cpu_s = total_of(
        *(total_of(node.cpu_user_s, node.cpu_system_s, node.cpu_softirq_s) for node in nodes)
    )
    a_gbyte_s = cpu_s / (sent_bytes / 1e9) if sent_bytes and cpu_s is not None else None
    found.put("cpu_s_per_gbyte", a_gbyte_s, NO_CORES if sent_bytes else reason)
    found.put("retransmits_count", _total([n.retransmits_count for n in nodes]), reason)
    found.put("drops_count", _total([n.drops_count for n in nodes]), reason)


def put_cores(found: MeasurementBuilder, intervals: Sequence[MarkedInterval]) -> None:
    """How busy were the nodes' cores in it?"""
    found.nodes = nodes = nodes_use(intervals)
    ratios = [node.cpu_busy_ratio for node in nodes if node.cpu_busy_ratio is not None]
    busy = max(ratios) if ratios and len(ratios) == len(nodes) else None
    found.put("cpu_busy_ratio", busy, NO_CORES if nodes else "the nodes' counters were not read")


def why_no_traffic(case: Case) -> str:
    return ONE_NODE if case.nodes == 1 else NO_COUNTERS


def _total(values: Sequence[int | None]) -> float | None:
    """The sum over nodes; None when one is unknown."""
    known = [value for value in values if value is not None]
    return float(sum(known)) if known and len(known) == len(values) else None
