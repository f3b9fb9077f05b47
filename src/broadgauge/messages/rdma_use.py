"""What did a network's RDMA adapters carry and complain of, as a pod's kernel counts it?"""

from dataclasses import dataclass, field
from typing import Literal

from broadgauge.messages.vocabulary import TextEnum


class CountedFor(TextEnum):
    """Whose bytes are in an adapter's counters?"""

    POD = "pod"
    """This pod's alone: the function or the port is its own."""
    NODE = "node"
    """All pods' of the node, and the node's own: the adapter is shared."""
    NOBODY = "nobody"
    """They are not there or can't be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PortTotals:
    """Monotonic totals of one port, at one time. None: not counted."""

    adapter: str
    """`mlx5_0:1`."""
    counted_for: CountedFor
    tx_bytes: int | None = None
    rx_bytes: int | None = None
    write_requests_count: int | None = None
    """RDMA writes that came, by which NCCL moves its data."""
    errors: dict[str, int] = field(default_factory=dict)
    """Those of `hw_counters` and `counters` that tell of loss and congestion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PortUse:
    """One port between two readings. None: not known, or a total went down."""

    adapter: str
    counted_for: CountedFor
    tx_bytes: int | None
    rx_bytes: int | None
    write_requests_count: int | None
    errors: dict[str, int]
    """Those that grew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RdmaUse:
    """A launch's, of one node and network."""

    network: str
    adapters: tuple[PortUse, ...]
    problems: tuple[str, ...]
    """What contradicts the way that was asked for."""
    notes: tuple[str, ...]
    """What can't be known, and what may cost speed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptersUsed:
    """Told of a trial over a network that has adapters in the pod."""

    type: Literal["adapters_used"] = "adapters_used"
    node: int
    use: RdmaUse
