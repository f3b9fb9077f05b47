"""What do the ranks stand on: emulated nodes, or this machine as it is?"""

import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from broadgauge.agent.cores import hold_to_cores
from broadgauge.agent.counters.infiniband import ADAPTERS, port_counters
from broadgauge.agent.counters.interfaces import with_interfaces
from broadgauge.agent.emulated.disk_groups import ClusterGroup
from broadgauge.agent.emulated.metering import LinkCounters, NicTotals
from broadgauge.agent.emulated.namespaces import (
    drop_privileges_for_rank,
    prepare_cluster_root,
)
from broadgauge.agent.emulated.nodes import build_cluster
from broadgauge.agent.emulated.shaping import LinkPlan, SlowWay, unshaped
from broadgauge.agent.emulated.syscalls import PR_SET_PDEATHSIG, prctl
from broadgauge.agent.supervisor.cpu_use import (
    CoreSeconds,
    RankOnNode,
    cpu_seconds,
    node_seconds,
    ranks_seconds,
)
from broadgauge.agent.supervisor.link_facts import LinkMeasurements, Measuring
from broadgauge.messages.agent import NodeReading
from broadgauge.messages.counters import NicCounters, NodeCounters
from broadgauge.messages.launch_order import LaunchOrder, Link, Mode
from broadgauge.messages.storage import Throttle
from broadgauge.messages.vocabulary import CounterKind

_USUAL_MTU_BYTES = 1500


class LaunchNodes(Protocol):
    """Where ranks run and what is counted there."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know; it grows as links are measured."""
        ...

    def entry_to(self, node: int) -> Callable[[], None]:
        """What a rank does between its fork and its exec."""
        ...

    def make_ready_for(self, task: object) -> None:
        """Of a trial that begins."""
        ...

    def close(self) -> None:
        """No rank is left."""
        ...

    def reshape(self, link: Link | None) -> Measuring:
        """Give every link this rate, and measure what the host could carry over it."""
        ...

    def read_counters(self, ranks: Sequence[RankOnNode]) -> tuple[NodeReading, ...]:
        """Each node's monotonic totals."""
        ...


def make_nodes(order: LaunchOrder) -> LaunchNodes:
    """Build what this launch stands on. Raises EmulationError."""
    return EmulatedNodes(order) if order.mode is Mode.NAMESPACES else PlainNodes(order)


class PlainNodes:
    """One node: this machine, its ranks held to their cores; all of them where it names none."""

    def __init__(self, order: LaunchOrder, *, adapters: Path = ADAPTERS) -> None:
        """`adapters`: where the kernel shows InfiniBand adapters; tests plant their own."""
        self._adapters = adapters
        self._nodes = tuple(node.node for node in order.nodes)
        every = tuple(sorted(os.sched_getaffinity(0)))
        self._node_cores = tuple(node.cores or every for node in order.nodes)
        self._interfaces = tuple(node.interfaces for node in order.nodes)

    @property
    def notes(self) -> tuple[str, ...]:
        return ()

    def entry_to(self, node: int) -> Callable[[], None]:
        cores, parent = self._node_cores[self._nodes.index(node)], os.getpid()

        def enter() -> None:
            hold_to_cores(cores)
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                sys.exit("the supervisor has ended")

        return enter

    def make_ready_for(self, task: object) -> None:
        """Ranks have what the user has."""

    def close(self) -> None:
        """Nothing was made."""

    def reshape(self, link: Link | None) -> Measuring:
        assert link is None, "there is no link to shape"
        yield from ()
        return None

    def read_counters(self, ranks: Sequence[RankOnNode]) -> tuple[NodeReading, ...]:
        here = [(self._nodes.index(node), pid) for node, pid in ranks]
        seconds, ranks_s = cpu_seconds(), ranks_seconds(self._node_cores, here)
        ports = port_counters(self._adapters)
        read = (
            replace(_node_counters(cores, None, seconds, rank_s), nics=ports)
            for cores, rank_s in zip(self._node_cores, ranks_s, strict=True)
        )
        return tuple(
            NodeReading(node=node, counters=with_interfaces(counters, interfaces))
            for node, counters, interfaces in zip(self._nodes, read, self._interfaces, strict=True)
        )


class EmulatedNodes:
    """Nodes of namespaces, joined by shaped links. Lives in PID 1."""

    def __init__(self, order: LaunchOrder) -> None:
        prepare_cluster_root()
        assert order.owns_all, "the emulated nodes of a launch are all on one machine"
        self._node_cores = tuple(node.cores for node in order.nodes)
        assert order.uid is not None
        assert order.gid is not None
        self._ids = (order.uid, order.gid)
        link = order.link or Link(rate_gbps=None, mtu_bytes=_USUAL_MTU_BYTES)
        self._built = (link.overlay, link.nics_per_node)
        has_overlay = link.overlay is not None
        self._cluster = build_cluster(
            len(self._node_cores),
            unshaped(link_plan(link)),
            nics_per_node=link.nics_per_node,
            has_overlay=has_overlay,
            cores_per_node=self._node_cores,
        )
        self._measurements = LinkMeasurements(self._cluster, has_overlay=has_overlay)
        self._disk_group: ClusterGroup | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        return (*self._cluster.warnings, *self._measurements.notes)

    def entry_to(self, node: int) -> Callable[[], None]:
        where, (uid, gid) = self._cluster.nodes[node], self._ids

        def enter() -> None:
            where.enter()
            drop_privileges_for_rank(uid, gid)

        return enter

    def make_ready_for(self, task: object) -> None:
        is_throttled = isinstance(getattr(task, "throttle", None), Throttle)
        if is_throttled and self._disk_group is None:
            self._disk_group = ClusterGroup.make()

    def close(self) -> None:
        if self._disk_group is not None:
            self._disk_group.close()

    def reshape(self, link: Link | None) -> Measuring:
        if link is None:
            return None
        assert (link.overlay, link.nics_per_node) == self._built, "NICs are built with the nodes"
        return (yield from self._measurements.shape_and_measure(link_plan(link)))

    def read_counters(self, ranks: Sequence[RankOnNode]) -> tuple[NodeReading, ...]:
        has_link = len(self._cluster.nodes) > 1
        links = [node.read_counters() if has_link else None for node in self._cluster.nodes]
        seconds, ranks_s = cpu_seconds(), ranks_seconds(self._node_cores, ranks)
        each = zip(self._node_cores, links, ranks_s, strict=True)
        return tuple(
            NodeReading(node=node, counters=_node_counters(cores, link, seconds, rank_s))
            for node, (cores, link, rank_s) in enumerate(each)
        )


def link_plan(link: Link) -> LinkPlan:
    """What are the emulated links told?"""
    return LinkPlan(
        rate_gbps=link.rate_gbps,
        mtu=link.mtu_bytes,
        receive_rate_gbps=link.receive_rate_gbps,
        delay_s=link.delay_s,
        jitter_s=link.jitter_s,
        loss_ratio=link.loss_ratio,
        slow_ways=tuple(
            SlowWay(nodes=pair.nodes, rate_ratio=pair.rate_ratio) for pair in link.slow_pairs
        ),
    )


def _node_counters(
    cores: tuple[int, ...],
    link: LinkCounters | None,
    seconds: Mapping[int, CoreSeconds],
    ranks_s: float | None,
) -> NodeCounters:
    user_s, system_s, softirq_s, stolen_s = node_seconds(cores, seconds)
    return NodeCounters(
        tx_bytes=None if link is None else link.tx_bytes,
        rx_bytes=None if link is None else link.rx_bytes,
        drops_count=None if link is None else link.tx_drops + link.rx_drops,
        retransmits_count=None if link is None else link.tcp_retransmits,
        cores_count=len(cores),
        cpu_user_s=user_s,
        cpu_system_s=system_s,
        cpu_softirq_s=softirq_s,
        cpu_stolen_s=stolen_s,
        ranks_cpu_s=ranks_s,
        nics=() if link is None else tuple(map(_nic_counters, link.nics)),
    )


def _nic_counters(nic: NicTotals) -> NicCounters:
    return NicCounters(
        name=nic.device,
        tx_bytes=nic.sent.num_bytes,
        rx_bytes=nic.received.num_bytes,
        drops_count=nic.sent.num_drops + nic.received.num_drops,
        kind=CounterKind.SHAPER,
    )
