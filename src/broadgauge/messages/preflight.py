"""What do agents look at together before GPU hours are spent, and what was found?

    leader → agent                            agent → leader
      preflight_open    listen on these networks   preflight_opened   where; what this machine is
      preflight_call    call all others            preflight_called   whom it reached
      preflight_close   answer nobody any more

Only outside of launches. Agents answer each other until all have called. Each order has a number,
and its answer the same: a late one of an earlier preflight is none of this one's.
"""

from dataclasses import dataclass, field
from typing import Literal

from broadgauge.messages.asked_network import AskedNetwork

PreflightMode = Literal["no", "first", "only"]
"""Is there to be one? `first`: and then the jobs; `only`: and no job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedNetwork:
    """What one agent is to listen on."""

    name: str
    """As findings call it: launches over one network that ask for other NICs of it, or for another
    library's, have several."""
    interfaces: tuple[str, ...] = ()
    """In the order of NICs."""
    network: AskedNetwork | None = None
    """Whose interfaces the agent has to look for; None: they are named."""
    given: tuple[dict[str, str], ...] = ()
    """NCCL's and Gloo's variables that its launches are given, those of each kind once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedNic:
    """Where an agent listens on one NIC of one network."""

    agent: int
    network: str
    nic: int
    """Its number within the network: it is tried with those of the same number."""
    interface: str
    address: str
    port: int
    mtu_bytes: int | None = None
    """None: not known."""
    speed_mbps: int | None = None
    """As its driver says; None: it does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairResult:
    """What became of one agent's call of another, over one NIC each."""

    caller: int
    listener: int
    network: str
    nic: int
    is_tried: bool = True
    """False: the time for all calls had passed."""
    trouble: str | None = None
    """None: bytes went there and back, where it was tried."""
    path_mtu_bytes: int | None = None
    """The largest packet that the way carries, as far as the caller's kernel was told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkHere:
    """What a network is on one machine, beside its addresses."""

    agent: int
    network: str
    problems: tuple[str, ...] = ()
    """Why no launch can use it here: no adapter for the RDMA that is asked for, …."""
    unknown: str | None = None
    """Why it can't be said yet what it is here."""
    is_rdma: bool = False
    """Do launches send by RDMA here? Then TCP has to reach the others over its first NIC alone."""
    port_rates_gbps: tuple[float, ...] = ()
    """Of its RDMA ports, as their drivers say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuState:
    """One GPU, as nvidia-smi tells it now. None: it does not say."""

    index: int
    model: str
    memory_bytes: int | None = None
    used_bytes: int | None = None
    """By whomever."""
    uncorrected_errors_count: int | None = None
    """Of its memory, since the driver was loaded."""
    is_remapping_pending: bool | None = None
    """A row of its memory is to be replaced at the next reset."""
    has_remapping_failed: bool | None = None
    is_slowed_by: tuple[str, ...] = ()
    """`hardware`, `heat`, `power brake`."""
    is_split: bool | None = None
    """Into MIG's instances."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftwareHere:
    """What ranks would find on one machine."""

    python: str
    torch: str | None = None
    """None: not found for this Python."""
    nccl: str | None = None
    gpu_driver: str | None = None
    gpus: tuple[GpuState, ...] | None = None
    """None: there is no nvidia-smi, or it does not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPreflight:
    """Say what you are, and listen on what these networks are here."""

    type: Literal["preflight_open"] = "preflight_open"
    number: int
    networks: tuple[CheckedNetwork, ...]
    limit_s: float
    """For all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightOpened:
    """Where this agent listens, and what it found."""

    type: Literal["preflight_opened"] = "preflight_opened"
    number: int
    nics: tuple[CheckedNic, ...] = ()
    networks: tuple[NetworkHere, ...] = ()
    software: SoftwareHere | None = None
    """None: it could not be looked at."""
    trouble: str | None = None
    """Why nothing was found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimits:
    """For calls of one agent, in seconds."""

    one_s: float
    """What nobody answers the kernel sends again after 1 and 3 s, and a neighbour that is not there
    it gives up after 3 s. Source: RFC 6298, 2.1; arp(7), mcast_solicit and retrans_time."""
    all_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOthers:
    """Call all of the others, and answer them."""

    type: Literal["preflight_call"] = "preflight_call"
    number: int
    nics: tuple[CheckedNic, ...]
    """Of all agents."""
    key: str = field(repr=False)
    """That connections begin with, so that nobody else's is taken for ours."""
    limits: CallLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class OthersCalled:
    """What became of this agent's calls. It goes on answering until it is told to close."""

    type: Literal["preflight_called"] = "preflight_called"
    number: int
    results: tuple[PairResult, ...] = ()
    trouble: str | None = None
    """Why nothing came of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosePreflight:
    """All have called."""

    type: Literal["preflight_close"] = "preflight_close"


PreflightOrder = OpenPreflight | CallOthers | ClosePreflight


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightFinding:
    """One thing that is not as it should be, once for all machines that it is so on."""

    kind: Literal["fails", "differs", "unknown"]
    """`fails`: launches would fail or hang. `differs`: they run, and what they measure may be this.
    `unknown`: it could not be looked at."""
    text: str
    """For people, with the machines' names."""
    network: str | None = None
    """None: it is of no network."""
    of: Literal["every launch", "our own workloads", "NCCL"] = "every launch"
    """Which launches it would be the end of."""
    agents: tuple[tuple[int, ...], ...] = ()
    """Machines that can't be in one launch: a set of one can't be in any of several machines.
    Launches over `network` are meant, or all. Empty: no launch is stopped. Of `unknown` those that
    were not looked at, which stops none either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightDone:
    """What the leader keeps of it for the tool."""

    type: Literal["preflight_done"] = "preflight_done"
    lasted_s: float
    names: tuple[str, ...]
    """Of the machines that were asked, by their agents' numbers: a pod's node, a host's name."""
    networks: tuple[str, ...]
    num_calls: int
    """Each over one NIC, in one direction."""
    findings: tuple[PreflightFinding, ...]
    failing: tuple[int, ...]
    """A smallest set of machines, as far as one was found, without which nothing fails, and those
    that did not answer."""
