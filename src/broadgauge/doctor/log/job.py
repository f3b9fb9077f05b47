"""What is the job as a whole, of all that its processes told? What every conclusion asks."""

import re
from collections.abc import Iterable, Iterator

from broadgauge.doctor.log.facts import (
    CommunicatorFacts,
    LogReading,
    Place,
    ProcessFacts,
    Seen,
    Speaker,
    Way,
)

SOCKET = "socket"
"""NCCL's own TCP network, in lower case; a plugin's are others."""
NO_P2P_LEVELS = ("0", "LOC", "NVL")
"""Of NCCL_P2P_LEVEL: none, or over NVLink alone. Source: NVIDIA's guide to NCCL, variables."""
OWN_RDMA = "ib"
"""NCCL's own network over verbs: InfiniBand, RoCE, and whatever else has verbs."""
_OWN_NETWORKS = (OWN_RDMA, SOCKET)
_INSIDE = frozenset({Way.P2P, Way.SHM})
"""Only GPUs of one node reach each other so, but for NVLink between nodes (MNNVL)."""
_WAYS_OF_NETWORK = frozenset({Way.SOCKETS, Way.NETWORK, Way.GDRDMA, Way.COLLNET})


def largest(reading: LogReading) -> CommunicatorFacts | None:
    """The communicator with most ranks: of equal ones the one that tells most, then the first."""
    return max(
        reading.communicators.values(),
        key=lambda each: (each.num_ranks or len(each.members), len(each.paths), len(each.members)),
        default=None,
    )


def num_nodes(reading: LogReading) -> int | None:
    """How many nodes has the job? What NCCL takes for them, else the hosts that speak.

    None where one host speaks, not of all ranks, and no communicator says how many there are.
    """
    told = [c.num_nodes for c in reading.communicators.values() if c.num_nodes is not None]
    if told:
        return max(told)
    hosts = {speaker.host for speaker in reading.processes}
    if len(hosts) > 1:
        return len(hosts)
    listed = {each.host for each in reading.listed_ranks.values()}
    communicator = largest(reading)
    if listed and communicator is None:
        return len(listed)
    if communicator is None or len(communicator.members) != communicator.num_ranks:
        return None
    nodes = set(nodes_of_ranks(reading, communicator).values())
    return len(nodes) or None


def has_several_nodes(reading: LogReading) -> bool:
    """Is it known that ranks talk between nodes?

    GPUs that reach each other by neither P2P nor shared memory are several nodes for NCCL: where
    every rank is known to be on one host, they are one here.
    """
    nodes = num_nodes(reading)
    if nodes is None or nodes < 2:
        return False
    communicator = largest(reading)
    if communicator is None or len(communicator.members) != communicator.num_ranks:
        return True
    return len(set(nodes_of_ranks(reading, communicator).values())) > 1


def is_one_node(reading: LogReading) -> bool:
    """Is it known that all ranks are on one node?"""
    return num_nodes(reading) == 1


def networks(reading: LogReading) -> dict[str, list[ProcessFacts]]:
    """Who chose which network: by its name as NCCL writes it, in the order first said."""
    chosen: dict[str, list[ProcessFacts]] = {}
    for process in reading.processes.values():
        if process.network is not None:
            chosen.setdefault(process.network, []).append(process)
    return chosen


def uses_sockets(process: ProcessFacts) -> bool:
    return process.network is not None and process.network.casefold() == SOCKET


def external_plugins_failed(process: ProcessFacts) -> set[str]:
    """Networks of plugins that gave up; one that was loaded, too, where sockets are used instead.

    `IB` and `Socket` are NCCL's own; FastSocket and what libfabric offers over TCP are sockets.
    """
    failed = {name for name in process.failed_plugins if name.casefold() not in _OWN_NETWORKS}
    if process.plugin is not None and uses_sockets(process) and not failed:
        failed.add(process.plugin)
    return failed


def variable(processes: Iterable[ProcessFacts], name: str) -> str | None:
    """What the first that says so read it as; None: nobody says."""
    return next((p.variables[name] for p in processes if name in p.variables), None)


def is_on(value: str | None) -> bool:
    """Is a switch of NCCL's set and not 0?"""
    return value is not None and value.strip() not in ("", "0")


def said(reading: LogReading, *phrases: str) -> Iterator[Seen]:
    """What was seen of lines that hold one of these words, upper and lower case alike."""
    wanted = tuple(phrase.casefold() for phrase in phrases)
    for seen in reading.seen:
        text = " ".join(line for _, line in seen.lines).casefold()
        if any(phrase in text for phrase in wanted):
            yield seen


def node_of(reading: LogReading, speaker: Speaker) -> str:
    """Which node is this process on, as NCCL has it: NCCL_HOSTID where it is set, else the host.

    Source: NVIDIA/nccl src/misc/utils.cc, getHostHash.
    """
    process = reading.processes.get(speaker)
    own = None if process is None else process.variables.get("NCCL_HOSTID")
    return own or speaker.host


def nodes_of_ranks(reading: LogReading, communicator: CommunicatorFacts) -> dict[int, str]:
    """By rank, as far as members are known, and who reaches them by P2P or shared memory."""
    nodes = {rank: node_of(reading, who) for rank, who in communicator.members.items()}
    if len(nodes) == communicator.num_ranks or communicator.has_mnnvl:
        return nodes
    near: dict[int, list[int]] = {}
    for (a, b), ways in communicator.paths.items():
        if ways.keys() & _INSIDE:
            near.setdefault(a, []).append(b)
            near.setdefault(b, []).append(a)
    reached = list(nodes)
    for rank in reached:
        for other in near.get(rank, ()):
            if other not in nodes:
                nodes[other] = nodes[rank]
                reached.append(other)
    return nodes


def is_between_nodes(nodes: dict[int, str], pair: tuple[int, int]) -> bool | None:
    """None: the node of one of the two is not known."""
    first, second = (nodes.get(rank) for rank in pair)
    return None if first is None or second is None else first != second


def ways_inside(reading: LogReading, communicator: CommunicatorFacts) -> set[Way]:
    """That pairs of ranks take which are known to be on one node."""
    nodes = nodes_of_ranks(reading, communicator)
    return {
        way
        for pair, of_pair in communicator.paths.items()
        if is_between_nodes(nodes, pair) is False
        for way in of_pair
    }


def is_of_network(way: Way) -> bool:
    return way in _WAYS_OF_NETWORK


def version_key(version: str | None) -> tuple[int, ...] | None:
    """`2.28.9+cuda12.9` → (2, 28, 9), for comparing."""
    match = None if version is None else re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?", version)
    return None if match is None else tuple(int(part or 0) for part in match.groups())


def first_place(processes: Iterable[ProcessFacts]) -> Place | None:
    """Where the first of them begins to speak."""
    return next((process.place for process in processes), None)
