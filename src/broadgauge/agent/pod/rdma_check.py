"""Did a launch's bytes cross the adapters that they were meant for, by the adapters' counters?

NCCL's log says which way it chose (platforms/meant_transport.py holds that against what was asked);
the counters say what crossed the ports. In a pod that shares its node's adapter they hold every
pod's bytes: too few of them still prove that RDMA did not carry the launch, and enough of them
prove nothing.

Source: Linux, Documentation/ABI/stable/sysfs-class-infiniband; drivers/infiniband/hw/mlx5/
counters.c and its commit 0ad17a8f7fa0 (`rx_write_requests`: received WRITE requests for the
associated QPs; `out_of_sequence`: errors in the packet transport sequence number); NVIDIA/nccl,
src/transport/net_ib.cc: data is sent by RDMA WRITE, with and without immediate.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from broadgauge.agent.hardware.tree import Tree
from broadgauge.agent.infiniband import ADAPTERS, port_counters
from broadgauge.agent.pod.facts import PodFacts
from broadgauge.agent.pod.resolve import BY_VERBS, adapters_of
from broadgauge.messages.counters import NicCounters
from broadgauge.messages.hardware import HcaFacts
from broadgauge.messages.pod_network import PodNetwork
from broadgauge.messages.rdma_use import CountedFor, PortTotals, PortUse, RdmaUse
from broadgauge.wording.amounts import show_count, show_size

ERRORS = (
    *("out_of_sequence", "packet_seq_err", "local_ack_timeout_err", "rnr_nak_retry_err"),
    *("duplicate_request", "roce_adp_retrans", "np_ecn_marked_roce_packets", "rp_cnp_handled"),
    *("req_remote_access_errors", "req_cqe_error", "symbol_error", "port_xmit_discards"),
)
LOSS = ("out_of_sequence", "packet_seq_err", "local_ack_timeout_err", "roce_adp_retrans")
"""Packets that were lost or came in another order: RoCE sends all behind them again."""
_WRITES = "rx_write_requests"
CARRIED_RATIO = 0.5
"""Of the bytes that must have left: what is below did not go by RDMA. Headers, other pods and what
was sent before the first reading stay within it."""


@dataclass(slots=True, kw_only=True)
class TrialCounts:
    """The counters of a network's adapters around one trial."""

    network: PodNetwork
    adapters: tuple[str, ...]
    facts: PodFacts
    root: Path = Path("/")
    _before: tuple[PortTotals, ...] | None = None

    @classmethod
    def of(
        cls, network: PodNetwork, adapters: tuple[str, ...], facts: PodFacts, root: Path = Path("/")
    ) -> "TrialCounts | None":
        """`adapters`: those that it is to use; of a network that is meant as sockets all that its
        interfaces have are read. None: there is none, and nothing to be held against."""
        read = adapters or (adapters_of(network, facts) if network.transport is not None else ())
        return cls(network=network, adapters=read, facts=facts, root=root) if read else None

    def begin(self) -> None:
        """Before a trial."""
        self._before = read_counts(self.adapters, self.facts, self.root)

    def end(self) -> RdmaUse | None:
        """After it; None: none had begun."""
        before, self._before = self._before, None
        if before is None:
            return None
        after = read_counts(self.adapters, self.facts, self.root)
        return check_rdma(self.network, before, after)


def counted_for(hca: HcaFacts, facts: PodFacts) -> CountedFor:
    """An adapter whose interface is in the pod, and a virtual function where RDMA devices belong to
    a network namespace, are the pod's own."""
    is_exclusive = facts.hardware.rdma.namespace_mode == "exclusive"
    if hca.interfaces or (hca.is_virtual_function is True and is_exclusive):
        return CountedFor.POD
    return CountedFor.NODE


def read_counts(
    adapters: Sequence[str], facts: PodFacts, root: Path = Path("/")
) -> tuple[PortTotals, ...]:
    """Of `mlx5_0:1` and others, now: before and after a launch."""
    folder = root / str(ADAPTERS).lstrip("/")
    data = {each.name: each for each in port_counters(folder)}
    return tuple(_read(name, data.get(name), facts, Tree(root)) for name in adapters)


def _read(name: str, data: NicCounters | None, facts: PodFacts, tree: Tree) -> PortTotals:
    hca, _, number = name.partition(":")
    port = (str(ADAPTERS), hca, "ports", number)
    found = facts.hca(hca)
    totals = {
        each: total
        for each in (*ERRORS, _WRITES)
        for folder in ("hw_counters", "counters")
        if (total := tree.number(*port, folder, each)) is not None
    }
    is_counted = data is not None or bool(totals)
    return PortTotals(
        adapter=name,
        counted_for=(
            counted_for(found, facts) if found is not None and is_counted else CountedFor.NOBODY
        ),
        tx_bytes=None if data is None else data.tx_bytes,
        rx_bytes=None if data is None else data.rx_bytes,
        write_requests_count=totals.pop(_WRITES, None),
        errors=totals,
    )


def check_rdma(
    network: PodNetwork,
    before: Sequence[PortTotals],
    after: Sequence[PortTotals],
    expected_bytes: int | None = None,
) -> RdmaUse:
    """What the counters say of one node's part of a launch.

    `expected_bytes`: what must at least have left this node for others, by the collectives' sizes;
    None: not known. `before` and `after` are of the same adapters; of a network that is meant as
    TCP of those which its interfaces have.
    """
    first = {each.adapter: each for each in before}
    uses = [_between(first[each.adapter], each) for each in after if each.adapter in first]
    problems: list[str] = []
    if network.transport in BY_VERBS:
        problems += _not_by_rdma(network, uses, expected_bytes)
    elif network.transport is not None:
        problems += _by_rdma(network, uses)
    return RdmaUse(
        network=network.name,
        adapters=tuple(uses),
        problems=tuple(problems),
        notes=tuple(_notes(network, uses)),
    )


def _between(before: PortTotals, after: PortTotals) -> PortUse:
    grown = {name: total - before.errors.get(name, total) for name, total in after.errors.items()}
    return PortUse(
        adapter=after.adapter,
        counted_for=after.counted_for,
        tx_bytes=_difference(before.tx_bytes, after.tx_bytes),
        rx_bytes=_difference(before.rx_bytes, after.rx_bytes),
        write_requests_count=_difference(before.write_requests_count, after.write_requests_count),
        errors={name: count for name, count in grown.items() if count > 0},
    )


def _difference(before: int | None, after: int | None) -> int | None:
    """None also where a total went down: the driver was started again."""
    return None if before is None or after is None or after < before else after - before


def _not_by_rdma(
    network: PodNetwork, uses: Sequence[PortUse], expected_bytes: int | None
) -> Iterator[str]:
    """Too little is proof, whoever else was counted."""
    sent = [use.tx_bytes for use in uses]
    names = ", ".join(use.adapter for use in uses)
    if expected_bytes and sent and None not in sent:
        total = sum(each for each in sent if each is not None)
        if total < CARRIED_RATIO * expected_bytes:
            yield (
                f"`{network.transport}` is asked for: at least {show_size(expected_bytes)} left "
                f"this node, and {show_size(total)} left by {names}"
            )
    if expected_bytes is None and sent and not any(each is None or each for each in sent):
        yield f"`{network.transport}` is asked for, and nothing left by {names}"
    writes = [use.write_requests_count for use in uses]
    if writes and None not in writes and not any(writes):
        yield f"`{network.transport}` is asked for, and no RDMA write came in by {names}"


def _by_rdma(network: PodNetwork, uses: Sequence[PortUse]) -> Iterator[str]:
    """Only counters that are the pod's own prove it."""
    for use in uses:
        if use.counted_for is CountedFor.POD and use.write_requests_count:
            yield (
                f"`{network.transport}` is asked for, and {show_count(use.write_requests_count)} "
                f"RDMA writes came in by {use.adapter}"
            )


def _notes(network: PodNetwork, uses: Sequence[PortUse]) -> Iterator[str]:
    shared = [use.adapter for use in uses if use.counted_for is CountedFor.NODE]
    if shared:
        yield f"the counters of {', '.join(shared)} are the node's: other pods' bytes are in them"
    uncounted = [use.adapter for use in uses if use.counted_for is CountedFor.NOBODY]
    if uncounted:
        yield f"{', '.join(uncounted)}: no counters here, what crossed them is not known"
    total = sum(use.tx_bytes or 0 for use in uses)
    idle = [use.adapter for use in uses if use.tx_bytes is not None and not use.tx_bytes]
    if network.transport in BY_VERBS and total and idle:
        yield f"nothing left by {', '.join(idle)}: NCCL used the network's other adapters alone"
    for use in uses:
        lost = {name: use.errors[name] for name in LOSS if name in use.errors}
        if lost:
            shown = ", ".join(f"{name} {count}" for name, count in lost.items())
            whose = "" if use.counted_for is CountedFor.POD else ", of all pods of the node"
            yield f"{use.adapter} lost packets or got them in another order: {shown}{whose}"
