"""How evenly do the bytes of a node go over its NICs?"""

from collections.abc import Sequence
from dataclasses import dataclass

from broadgauge.results.model import CaseSummary
from broadgauge.results.summary import estimate_over
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.records.record import NicUse, Record

IMBALANCE = 1.25
"""A NIC with a quarter more than its part makes the job wait that much longer, where links are the
limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NicShare:
    """One NIC, over all nodes that have it."""

    name: str
    tx_bytes: Estimate
    """Of a trial, mean over nodes."""
    rx_bytes: Estimate
    share_ratio: Estimate
    """Of its node's bytes, both directions, mean over nodes."""
    lowest_ratio: float
    """Of the node where it has least, over all trials."""
    highest_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NicBalance:
    """The NICs of one case's nodes."""

    summary: CaseSummary
    nics: tuple[NicShare, ...]
    most_over_even_ratio: float
    """The busiest NIC of any node, over an even share: 1 is balanced."""
    busiest: str
    """`eth0 of node 1`."""

    @property
    def is_balanced(self) -> bool:
        return self.most_over_even_ratio <= IMBALANCE


def nic_balance(summary: CaseSummary) -> NicBalance | None:
    """How much did each NIC carry? None where nodes have one, or they were not counted.

    None on one node too: there the machine's own adapters are counted, whoever uses them.
    """
    if summary.case.link is None:
        return None
    records = [r for r in summary.good if any(len(node.nics) > 1 for node in r.nodes)]
    names = dict.fromkeys(nic.name for r in records for node in r.nodes for nic in node.nics)
    nics = [share for name in names if (share := _share(name, records)) is not None]
    if not nics:
        return None
    most, busiest = _busiest(records)
    return NicBalance(summary=summary, nics=tuple(nics), most_over_even_ratio=most, busiest=busiest)


def _share(name: str, records: Sequence[Record]) -> NicShare | None:
    def bytes_of(record: Record, direction: str) -> float | None:
        found: list[float] = [
            getattr(nic, direction)
            for node in record.nodes
            for nic in node.nics
            if nic.name == name
        ]
        return _mean(found)

    shares = [part for record in records for part in _parts(name, record)]
    tx = estimate_over(records, lambda record: bytes_of(record, "tx_bytes"))
    rx = estimate_over(records, lambda record: bytes_of(record, "rx_bytes"))
    share = estimate_over(records, lambda record: _mean(_parts(name, record)))
    if tx is None or rx is None or share is None:
        return None
    return NicShare(
        name=name,
        tx_bytes=tx,
        rx_bytes=rx,
        share_ratio=share,
        lowest_ratio=min(shares),
        highest_ratio=max(shares),
    )


def _parts(name: str, record: Record) -> list[float]:
    """Of each node's bytes, the part that went over the NIC of this name."""
    return [
        _bytes(nic) / total
        for node in record.nodes
        if (total := sum(map(_bytes, node.nics))) > 0
        for nic in node.nics
        if nic.name == name
    ]


def _busiest(records: Sequence[Record]) -> tuple[float, str]:
    """The NIC with most, by its mean over trials: over an even share of its node, and its name."""
    over_even: dict[tuple[int, str], list[float]] = {}
    for record in records:
        for node in record.nodes:
            total = sum(map(_bytes, node.nics))
            for nic in node.nics:
                if total > 0:
                    value = _bytes(nic) * len(node.nics) / total
                    over_even.setdefault((node.node, nic.name), []).append(value)
    means = {key: sum(values) / len(values) for key, values in over_even.items()}
    number, name = max(means, key=lambda key: means[key])
    return means[number, name], f"{name} of node {number}"


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _bytes(nic: NicUse) -> int:
    return nic.tx_bytes + nic.rx_bytes
