"""What is an agent told of a launch? Its nodes, its ranks, its links and the limits of time.

Nothing here names a path of the leader's machine. A plan's paths are relative to two folders that
each agent is started with: one for logs and what libraries write, and the working folder.
"""

from dataclasses import dataclass, field
from typing import Literal

from broadgauge.messages.asked_network import AskedNetwork
from broadgauge.messages.vocabulary import TextEnum


class Mode(TextEnum):
    NAMESPACES = "namespaces"
    """Nodes are namespaces, the agent is PID 1 of its own."""
    PLAIN = "plain"
    """No namespaces: the one node is this machine, its ranks are ordinary processes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowPair:
    """Two nodes with a slower way between them, in both directions."""

    nodes: tuple[int, int]
    rate_ratio: float
    """Of the network's rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """What every emulated node's link is to carry: all of a network that shapes it."""

    rate_gbps: float | None
    """Line rate of each NIC, 10^9 bit/s with Ethernet headers; None: unshaped."""
    mtu_bytes: int
    receive_rate_gbps: float | None = None
    """Towards a node, where it differs."""
    delay_s: float = 0.0
    jitter_s: float = 0.0
    loss_ratio: float = 0.0
    slow_pairs: tuple[SlowPair, ...] = ()
    overlay: Literal["vxlan"] | None = None
    nics_per_node: int = 1
    """These two are built with the nodes and stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseLimits:
    """How long may each phase last before it is ended as a time-out?"""

    rendezvous_s: float
    warm_up_s: float
    measure_s: float
    teardown_s: float
    stall_s: float | None = None
    """How long no step or metric may come once its pace is known, at least; None: not watched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlan:
    """A node that the agent owns."""

    node: int
    """Its number in the launch."""
    cores: tuple[int, ...]
    """That its ranks are held to; empty: all of the machine."""
    interfaces: tuple[str, ...] = ()
    """That lead to other nodes and were not made by us: what crosses them is counted."""
    network: AskedNetwork | None = None
    """Whose interfaces the agent has to look for, as only there they can be known; None: they are
    named, or there are none."""


Program = Literal["worker", "command"] | tuple[str, ...]
"""Our own: one process a rank, or one a node that starts torchrun; else a program and its
arguments. Who starts our own knows with which Python, and from which files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankPlan:
    """One process to start, on a node of this agent's."""

    rank: int
    """Of the whole launch."""
    node: int
    program: Program
    environment: dict[str, str] = field(repr=False)
    """What differs between the ranks; the rest is the launch's. Secrets are among them."""
    log_paths: dict[str, str] = field(default_factory=dict)
    """Variables that hold a path, relative to the agent's folder for logs."""
    log: str
    """The rank's own, relative to that folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOrder:
    """All that this agent must know to start its ranks."""

    type: Literal["launch"] = "launch"
    launch_id: str
    number: int = 0
    """The leader's own: two launches may have one id, where the first never ran anything."""
    mode: Mode
    num_nodes: int
    """Of the whole launch."""
    network_name: str = ""
    """As the experiment calls what its nodes reach each other by; empty: one node."""
    nodes: tuple[NodePlan, ...]
    ranks: tuple[RankPlan, ...]
    environment: dict[str, str] = field(repr=False)
    """What all ranks share, the true values of secrets too. It is added to the agent's own; only
    the numbers of a rank's two pipes come on top."""
    link: Link | None
    """None: one node, or links that are not ours to shape."""
    limits: PhaseLimits
    uid: int | None = None
    gid: int | None = None
    """The user's ids outside of all namespaces, which the ranks get back; None: the agent's."""

    @property
    def owns_all(self) -> bool:
        """Is there no other agent to wait for at a mark?"""
        return len(self.nodes) == self.num_nodes
