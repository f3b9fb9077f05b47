"""What is checked between pods before GPU hours are spent, and what was found?

leader → agent                            agent → leader
  preflight_open    listen on these networks   preflight_opened
  preflight_run     call those who listen      preflight_ran
  preflight_close   stop answering; launches that would hang are refused
"""

from dataclasses import dataclass, field
from typing import Literal

from broadgauge.messages.pod_network import PodNetwork


@dataclass(frozen=True, slots=True, kw_only=True)
class PodAddress:
    """Where a pod listens on one NIC of one network."""

    node: int
    network: str
    nic: int
    """Its number within the network: it is tried with those of the same number."""
    interface: str
    address: str
    port: int
    mtu_bytes: int | None = None
    """None: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One pod calls another one over one NIC each."""

    round: int
    """Within a round no node is in two pairs."""
    caller: int
    listener: int
    network: str
    nic: int
    source: str
    """The caller's address, which it calls from."""
    address: str
    port: int
    stream_s: float = 0.0
    """How long to send for; 0: a few packets of the largest size only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """What became of one probe."""

    caller: int
    listener: int
    network: str
    nic: int
    ok: bool
    rate_gbyte_per_s: float | None = None
    """What arrived, 10^9 byte/s, of a stream. A short look by one process: no measurement."""
    error: str | None = None
    """None: it went well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RdmaReadiness:
    """Could RDMA start from a pod over a network?"""

    node: int
    network: str
    adapters: tuple[str, ...]
    """`mlx5_0:1`."""
    rates_gbps: tuple[float | None, ...]
    """Of each of them, as its driver says."""
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkProblem:
    """Why launches over a network would fail or hang."""

    network: str
    text: str
    together: tuple[tuple[int, ...], ...]
    """Sets of nodes: a launch between nodes that has all of one set would fail. An empty set: any
    launch."""

    def concerns(self, num_nodes: int) -> bool:
        """A launch on the first so many nodes."""
        return num_nodes > 1 and any(
            all(node < num_nodes for node in nodes) for nodes in self.together
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPreflight:
    """Listen on what these networks are here."""

    type: Literal["preflight_open"] = "preflight_open"
    networks: tuple[PodNetwork, ...]
    limit_s: float
    """For all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightOpened:
    """Where this agent listens; `error`: what it could not, in words."""

    type: Literal["preflight_opened"] = "preflight_opened"
    addresses: tuple[PodAddress, ...]
    readiness: tuple[RdmaReadiness, ...]
    """Of all of the networks, also those without RDMA: what they lack here."""
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPreflight:
    """Call those of the others that are yours to call, and answer."""

    type: Literal["preflight_run"] = "preflight_run"
    addresses: tuple[PodAddress, ...]
    """Of all agents."""
    key: str = field(repr=False)
    """That connections begin with."""
    limit_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightRan:
    """What became of this agent's calls. It answers until it is told to close."""

    type: Literal["preflight_ran"] = "preflight_ran"
    results: tuple[ProbeResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosePreflight:
    """All have ended."""

    type: Literal["preflight_close"] = "preflight_close"
    problems: tuple[NetworkProblem, ...]
    """Launches that they concern are refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightDone:
    """What the leader keeps of it for the tool."""

    type: Literal["preflight_done"] = "preflight_done"
    lasted_s: float
    num_pods: int
    num_networks: int
    num_calls: int
    """Each over one NIC of a pair of pods."""
    problems: tuple[NetworkProblem, ...]
    notes: tuple[str, ...]
    """Why it may be slow, and what is not known."""

    @property
    def lines(self) -> tuple[str, ...]:
        """For people: what was tried, then what is wrong."""
        networks = "1 network" if self.num_networks == 1 else f"{self.num_networks} networks"
        calls = "1 call" if self.num_calls == 1 else f"{self.num_calls} calls"
        verdict = f"{len(self.problems)} problems" if self.problems else "all of them answered"
        return (
            f"preflight: {calls} between {self.num_pods} pods over {networks} in "
            f"{self.lasted_s:.1f} s: {verdict}",
            *(f"preflight: {each.text}" for each in self.problems),
            *(f"preflight: {note}" for note in self.notes),
        )
