"""What crossed a network's RDMA adapters in one trial, as a pod's kernel counts it?"""

from dataclasses import dataclass
from typing import Literal

from broadgauge.messages.vocabulary import TextEnum


class CountedFor(TextEnum):
    """Whose bytes are in an adapter's counters?"""

    POD = "pod"
    """This pod's alone: the function or the port is its own."""
    NODE = "node"
    """All pods' of the node, and the node's own: the adapter is shared."""
    NOBODY = "nobody"
    """They are not there, or can't be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PortUse:
    """One port between two readings. None: not known, or a total went down."""

    adapter: str
    """`mlx5_0:1`."""
    counted_for: CountedFor
    tx_bytes: int | None = None
    rx_bytes: int | None = None
    writes_count: int | None = None
    """RDMA writes that came, by which NCCL moves its data."""
    lost_packets_count: int | None = None
    """Those that were lost or came in another order, as far as the adapter counts them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptersUsed:
    """Said of a trial whose network has adapters in the pod, before its last rank is done."""

    type: Literal["adapters_used"] = "adapters_used"
    node: int
    ports: tuple[PortUse, ...]
