"""What decides how much bandwidth a job should have? Given by hand, or taken from its logs."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from broadgauge.catalog.gpus import find_gpu
from broadgauge.doctor.log.conclusions.adapter_kinds import OMNI_PATH, kind_of
from broadgauge.doctor.log.facts import Adapter, CommunicatorFacts, LogReading, ProcessFacts, Way
from broadgauge.doctor.log.gdr_state import GdrState, GdrStates
from broadgauge.doctor.log.job import (
    largest,
    networks,
    nodes_of_ranks,
    num_nodes,
    uses_sockets,
    ways_inside,
)
from broadgauge.doctor.log.topology import BY_NVLINK, BY_PCIE, all_p2p_distances
from broadgauge.doctor.log.transports import of_network
from broadgauge.messages.vocabulary import Transport


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """None: not known."""

    num_ranks: int | None = None
    num_nodes: int | None = None
    transport: Transport | None = None
    """Of the best network that the nodes have, whether it is used or not."""
    is_over_sockets: bool = False
    """The bytes go by TCP, whatever `transport` says."""
    nic_gbps: float | None = None
    """One NIC's rate, one direction."""
    num_nics: int | None = None
    """That one node uses."""
    gdr: GdrState = GdrState.UNKNOWN
    gpu: str | None = None
    """As the driver or the catalog names it."""
    inside: str | None = None
    """The path inside a node: `nvlink`, `pcie`, `shm`, `sockets`."""
    is_inside_guessed: bool = False
    """P2P was seen, and over NVLink or PCIe is not known."""
    is_inside_unseen: bool = False
    """No line says which way the bytes take: it is the one that such boards have."""


def situation_of(
    reading: LogReading, *, gpu: str | None = None, nic_gbps: float | None = None
) -> Situation:
    """Of the largest communicator. `gpu` and `nic_gbps`: what logs do not tell and a user knows."""
    communicator = largest(reading)
    users = list(reading.processes.values())
    adapters = {name: each for process in users for name, each in process.adapters.items()}
    speeds = [a.speed_mbps / 1000 for a in adapters.values() if a.speed_mbps is not None]
    taken = [p.seen_gbps for p in users if p.seen_gbps and not p.default_speed_interfaces]
    situation = Situation(
        num_ranks=len(reading.listed_ranks) or None
        if communicator is None
        else communicator.num_ranks,
        num_nodes=num_nodes(reading),
        transport=_transport(reading),
        is_over_sockets=any(map(uses_sockets, users)),
        nic_gbps=nic_gbps or max(speeds, default=min(taken, default=None)),
        num_nics=_num_nics(reading, communicator),
        gdr=_gdr(reading),
        gpu=gpu or _gpu_named(reading),
    )
    if communicator is None:
        return with_usual_path(situation)
    inside, is_guessed = _inside(reading, communicator)
    return replace(situation, inside=inside, is_inside_guessed=is_guessed)


def _gpu_named(reading: LogReading) -> str | None:
    """Where all ranks that nccl-tests lists have the same."""
    named = {each.gpu for each in reading.listed_ranks.values()}
    return next(iter(named)) if len(named) == 1 else None


def with_usual_path(situation: Situation) -> Situation:
    """No line names a path: boards of one node whose GPUs NVLink joins are taken to use it."""
    gpu = None if situation.gpu is None else find_gpu(situation.gpu)
    if situation.num_nodes != 1 or gpu is None or gpu.nvlink is None:
        return situation
    return replace(situation, inside="nvlink", is_inside_guessed=True, is_inside_unseen=True)


def _transport(reading: LogReading) -> Transport | None:
    """Of listed adapters; else of the network that was chosen."""
    adapters = (each for p in reading.processes.values() for each in p.adapters.values())
    adapter = next(adapters, None)
    if adapter is not None:
        return _of_adapter(adapter)
    users = [process for each in networks(reading).values() for process in each]
    return next((way for p in users if (way := of_network(str(p.network), p.provider))), None)


def _of_adapter(adapter: Adapter) -> Transport | None:
    """None: NCCL calls it IB, and it is something that the catalog does not know."""
    kind = kind_of(adapter.name)
    if kind is not None:
        return "omnipath" if kind.words == OMNI_PATH else None
    return "roce" if adapter.link.casefold().startswith("roce") else "infiniband"


def _num_nics(reading: LogReading, communicator: CommunicatorFacts | None) -> int | None:
    """Of the node that uses most: by its channels to others; else the adapters it lists."""
    if communicator is not None:
        used = _devices_used(reading, communicator)
        if used:
            return max(map(len, used.values()))
    listed = [len(process.adapters) for process in reading.processes.values()]
    if any(listed):
        return max(listed)
    interfaces = [len(process.interfaces) for process in reading.processes.values()]
    return max(interfaces, default=0) or None


def _devices_used(reading: LogReading, communicator: CommunicatorFacts) -> dict[str, set[str]]:
    nodes = nodes_of_ranks(reading, communicator)
    used: dict[str, set[str]] = {}
    for (a, b), devices in communicator.path_devices.items():
        if a in nodes and nodes.get(b) != nodes[a]:
            used.setdefault(nodes[a], set()).update(devices)
    return used


def _gdr(reading: LogReading) -> GdrState:
    """Off where it is off for any: the slowest sets the pace."""
    of_all = GdrStates(reading)
    states = {
        of_all.of_process(process)
        for process in reading.processes.values()
        if process.network is not None and not uses_sockets(process)
    }
    for state in (GdrState.OFF, GdrState.ON):
        if state in states:
            return state
    return GdrState.UNKNOWN


def _inside(reading: LogReading, communicator: CommunicatorFacts) -> tuple[str | None, bool]:
    """The slowest way between ranks of one node."""
    ways = ways_inside(reading, communicator)
    if Way.SOCKETS in ways:
        return "sockets", False
    if Way.SHM in ways:
        return "shm", False
    if Way.NVLS in ways or communicator.has_nvls or _has_multicast(reading.processes.values()):
        return "nvlink", False
    if Way.P2P not in ways:
        return None, False
    distances = all_p2p_distances(reading, communicator)
    if not distances.isdisjoint(BY_PCIE):
        return "pcie", False
    return "nvlink", not distances <= BY_NVLINK or not distances


def _has_multicast(processes: Iterable[ProcessFacts]) -> bool:
    return any(process.has_multicast for process in processes)
