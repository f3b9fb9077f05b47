"""Is a link's shaper right? Its queue is kept full, read every few milliseconds, and judged."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tests.machine_watch import LostTime
from tests.platforms.emulated.full_queue import QueueReader, filling
from tests.platforms.emulated.rate_verdict import Judge, Judgement, Rate

from broadgauge.agent.emulated.addresses import nic_address
from broadgauge.agent.emulated.links import ShapedInterface
from broadgauge.agent.emulated.nodes import EmulatedCluster, Node, build_cluster
from broadgauge.agent.emulated.shaping import (
    LinkPlan,
    SlowWay,
    burst_bytes,
    gso_max_bytes,
    unshaped,
)
from broadgauge.messages.payload import VXLAN_HEADER_BYTES

BETWEEN_READINGS_S = 4e-3
PATIENCE_S = 12.0
"""Twenty times what two spans take where both cores are away for 40 % of the time."""
_DRAIN_LIMIT_S = 120.0
OTHERS = "others"
_FIRST_LEAF = 0x10
"""The handles of the queues below HTB's classes: agent/emulated/traffic_control.py."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """One queue of a link between two nodes, and what it is to let through."""

    link: LinkPlan
    line_gbps: float
    """With every header: what the queue counts."""
    pair: tuple[int, int] = (0, 1)
    """From which node to which other."""
    is_receivers: bool = False
    """The switch's, in front of the receiver, which has to be the slower one; else the sender's."""
    is_after_unshaped: bool = False
    """Is the link to be shaped anew, from nothing?"""
    planted_ratio: float = 1.0
    """How far the shaper is really told to be off, to judge the judge."""

    @property
    def rate(self) -> Rate:
        slack_bytes = burst_bytes(self.line_gbps) + gso_max_bytes(self.link)
        return Rate(bytes_per_s=self.line_gbps * 1.25e8, slack_bytes=slack_bytes)

    @property
    def planted_link(self) -> LinkPlan:
        assert self.link.rate_gbps is not None
        return replace(self.link, rate_gbps=self.link.rate_gbps * self.planted_ratio)


def judge(
    watch: str,
    queues: Sequence[dict[str, Any]],
    num_nodes: int = 2,
    patience_s: float = PATIENCE_S,
    has_overlay: bool = False,
) -> list[dict[str, Any]]:
    """A case of inside.py: judges these queues one after the other. `watch`: LostTime's folder."""
    lost_time = LostTime(Path(watch))
    wanted = [_queue_of(**each) for each in queues]
    cluster = build_cluster(num_nodes, wanted[0].planted_link, has_overlay=has_overlay)
    answer = []
    for queue in wanted:
        found = _judge_one(cluster, queue, lost_time, patience_s)
        answer.append(asdict(found) | {"ratio": found.ratio, "verdict": found.verdict})
    return answer


def link_of(slow_ways: list[tuple[int, int, float]] | None = None, **link: Any) -> LinkPlan:
    """A link plan from what JSON can say."""
    ways = tuple(SlowWay(nodes=(a, b), rate_ratio=ratio) for a, b, ratio in slow_ways or [])
    return LinkPlan(**{"rate_gbps": None, "mtu": 1500} | link, slow_ways=ways)


def _queue_of(link: dict[str, Any], pair: Sequence[int] = (0, 1), **others: Any) -> Queue:
    first, second = pair
    return Queue(link=link_of(**link), pair=(first, second), **others)


def _judge_one(
    cluster: EmulatedCluster, queue: Queue, lost_time: LostTime, patience_s: float
) -> Judgement:
    sender, receiver = (cluster.nodes[number] for number in queue.pair)
    _drain(sender.nics[0].egress)
    if queue.is_after_unshaped:
        cluster.shape(unshaped(queue.link))
    cluster.shape(queue.planted_link)
    reader = _reader(sender, receiver, is_receivers=queue.is_receivers)
    overhead_bytes = VXLAN_HEADER_BYTES if sender.nics[0].tunnel else 0
    with filling(sender, receiver, queue.link, overhead_bytes), _punctual():
        judge = Judge(queue.rate, lost_time.most_ratio)
        end_s = time.monotonic() + patience_s
        while time.monotonic() < end_s and not judge.take(reader.read()):
            time.sleep(BETWEEN_READINGS_S)
    return judge.judgement()


def _drain(interface: ShapedInterface) -> None:
    """Until nothing waits of what was judged before: queues share their interface's line."""
    give_up_s = time.monotonic() + _DRAIN_LIMIT_S
    while interface.read()[1] > 0:
        if time.monotonic() > give_up_s:
            raise TimeoutError(f"interface {interface.index} does not send what waits in it")
        time.sleep(BETWEEN_READINGS_S)


def _reader(sender: Node, receiver: Node, *, is_receivers: bool) -> QueueReader:
    if is_receivers:
        [reader] = _readers(receiver, receiver.nics[0].ingress, receiver.home.net).values()
        return reader
    readers = readers_by_way(sender)
    nic = receiver.nics[0]
    return readers.get(nic_address(nic.node_number, nic.number), readers[OTHERS])


def readers_by_way(node: Node) -> dict[str, QueueReader]:
    """One for each class of a node's first NIC, by the peer that it is for, or `others`."""
    return _readers(node, node.nics[0].egress, node.namespaces.net)


def _readers(node: Node, end: ShapedInterface, net_fd: int) -> dict[str, QueueReader]:
    tree = end.plan and end.plan.htb
    return {
        leaf.destination or OTHERS: QueueReader(
            node.home.net, net_fd, end.index, (_FIRST_LEAF + number) << 16
        )
        for number, leaf in enumerate(tree.leaves if tree else ())
    }


@contextmanager
def _punctual() -> Iterator[None]:
    """Read before ordinary programs have their turn, where we may."""
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
