"""What do the counters of a pod's RDMA adapters say of a trial?

In a pod that shares its node's adapter they hold every pod's bytes.

Source: Linux, Documentation/ABI/stable/sysfs-class-infiniband; drivers/infiniband/hw/mlx5/
counters.c (`rx_write_requests`: received WRITE requests for the associated QPs; `out_of_sequence`
and its siblings: packets that were lost or came in another order); NVIDIA/nccl,
src/transport/net_ib.cc: data is sent by RDMA WRITE, with and without immediate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from broadgauge.agent.counters.infiniband import ADAPTERS, port_counters
from broadgauge.agent.hardware.tree import Tree
from broadgauge.agent.pod.facts import PodFacts
from broadgauge.messages.adapters_used import CountedFor, PortUse
from broadgauge.messages.hardware import HcaFacts

_LOSSES = ("out_of_sequence", "packet_seq_err", "local_ack_timeout_err", "roce_adp_retrans")
_WRITES = "rx_write_requests"


@dataclass(slots=True)
class TrialCounts:
    """Of these adapters, from a trial's beginning to its end."""

    adapters: tuple[str, ...]
    """`mlx5_0:1`."""
    facts: PodFacts
    root: Path = Path("/")
    _before: tuple[PortUse, ...] = ()

    def begin(self) -> None:
        """Read them."""
        self._before = read_totals(self.adapters, self.facts, self.root)

    def end(self) -> tuple[PortUse, ...]:
        """What has been counted since; nothing where none had begun."""
        before, self._before = self._before, ()
        if not before:
            return ()
        after = read_totals(self.adapters, self.facts, self.root)
        return tuple(_between(*pair) for pair in zip(before, after, strict=True))


def read_totals(
    adapters: Sequence[str], facts: PodFacts, root: Path = Path("/")
) -> tuple[PortUse, ...]:
    """Of each of them, since its driver was started."""
    tree = Tree(root)
    counted = {each.name: each for each in port_counters(root / str(ADAPTERS).lstrip("/"))}
    found = []
    for name in adapters:
        hca, _, number = name.partition(":")
        port = (str(ADAPTERS), hca, "ports", number, "hw_counters")
        data, own = counted.get(name), facts.hca(hca)
        losses = [tree.number(*port, each) for each in _LOSSES]
        known = [each for each in losses if each is not None]
        found.append(
            PortUse(
                adapter=name,
                counted_for=CountedFor.NOBODY if data is None else counted_for(own, facts),
                tx_bytes=None if data is None else data.tx_bytes,
                rx_bytes=None if data is None else data.rx_bytes,
                writes_count=tree.number(*port, _WRITES),
                lost_packets_count=sum(known) if known else None,
            )
        )
    return tuple(found)


def counted_for(hca: HcaFacts | None, facts: PodFacts) -> CountedFor:
    """An adapter whose interface is in the pod, and a virtual function where RDMA devices belong to
    a network namespace, are the pod's own."""
    is_exclusive = facts.hardware.rdma.namespace_mode == "exclusive"
    if hca is not None and (hca.interfaces or (hca.is_virtual_function is True and is_exclusive)):
        return CountedFor.POD
    return CountedFor.NODE


def _between(before: PortUse, after: PortUse) -> PortUse:
    return PortUse(
        adapter=after.adapter,
        counted_for=after.counted_for,
        tx_bytes=_difference(before.tx_bytes, after.tx_bytes),
        rx_bytes=_difference(before.rx_bytes, after.rx_bytes),
        writes_count=_difference(before.writes_count, after.writes_count),
        lost_packets_count=_difference(before.lost_packets_count, after.lost_packets_count),
    )


def _difference(before: int | None, after: int | None) -> int | None:
    """None also where a total went down: the driver was started again."""
    return None if before is None or after is None or after < before else after - before
