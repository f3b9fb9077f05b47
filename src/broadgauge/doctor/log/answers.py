"""Is RDMA on? Does the NIC reach the GPUs' memory? Are the GPUs joined by NVLink? By the logs.

What a log does not say is unknown, never off.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from broadgauge.doctor.answer import State, Subject, SubjectAnswer
from broadgauge.doctor.log.conclusions.adapter_kinds import adapters_words, kind_of
from broadgauge.doctor.log.conclusions.conclusion import quoted
from broadgauge.doctor.log.facts import CommunicatorFacts, LogReading, Place, ProcessFacts, Way
from broadgauge.doctor.log.gdr_state import GdrState, GdrStates
from broadgauge.doctor.log.job import (
    has_several_nodes,
    is_between_nodes,
    is_of_network,
    is_one_node,
    largest,
    networks,
    nodes_of_ranks,
    uses_sockets,
    ways_inside,
)
from broadgauge.doctor.log.speakers import who
from broadgauge.doctor.log.topology import BY_NVLINK, BY_PCIE, all_p2p_distances
from broadgauge.doctor.log.transports import of_network
from broadgauge.wording.listing import listed

_MOST_NAMES = 3


def answers_of(reading: LogReading) -> Mapping[Subject, SubjectAnswer]:
    """Of one job's logs, every question."""
    rdma = _rdma(reading)
    return {
        Subject.RDMA: rdma,
        Subject.GDR: _gdr(reading, rdma),
        Subject.NVLINK: _nvlink(reading),
        Subject.TCP: _tcp(reading),
    }


def _rdma(reading: LogReading) -> SubjectAnswer:
    if not _crosses_nodes(reading):
        return _not_needed(reading)
    return _by_networks(reading) or _of_channels(reading)


def _by_networks(reading: LogReading) -> SubjectAnswer | None:
    """By what processes chose; None: no line says it, or nobody knows what it is."""
    told = _told(reading)
    on, off = told.get(State.ON, []), told.get(State.OFF, [])
    if on and off:
        speakers = who(reading, (p.speaker for p in off))
        return SubjectAnswer(State.PART, f"{speakers}: {_instead(off)}", _evidence(reading))
    if on:
        is_mixed = any(
            Way.SOCKETS in w for c in reading.communicators.values() for w in _between(reading, c)
        )
        if is_mixed:
            return SubjectAnswer(
                State.PART, "some channels between nodes go over TCP sockets", _evidence(reading)
            )
        return SubjectAnswer(State.ON, _over(on), _evidence(reading))
    return SubjectAnswer(State.OFF, _instead(off), _evidence(reading)) if off else None


def _of_channels(reading: LogReading) -> SubjectAnswer:
    """By the devices of channels, where no line names a known network."""
    state = _by_channels(reading)
    if state is not None:
        words = "TCP sockets" if state is State.OFF else "channels of the log go over it"
        return SubjectAnswer(state, words, _evidence(reading))
    unknown = sorted({str(p.network) for p in _told(reading).get(State.UNKNOWN, ())})
    if unknown:
        names = listed(unknown, most=_MOST_NAMES)
        return SubjectAnswer(State.UNKNOWN, f"whether the network `{names}` is RDMA is not known")
    return SubjectAnswer(State.UNKNOWN, _why_unknown(reading))


def _why_unknown(reading: LogReading) -> str:
    if not reading.num_nccl_lines:
        return "no line of NCCL's; NCCL_DEBUG=INFO makes it say what it does"
    return "no line says which network NCCL chose; NCCL_DEBUG=INFO with NCCL_DEBUG_SUBSYS=INIT,NET"


def _crosses_nodes(reading: LogReading) -> bool:
    """May bytes go between nodes? Not where all ranks are on one and none uses a NIC."""
    if has_several_nodes(reading) or not is_one_node(reading):
        return True
    return any(
        is_of_network(way)
        for communicator in reading.communicators.values()
        for ways in communicator.paths.values()
        for way in ways
    )


def _not_needed(reading: LogReading) -> SubjectAnswer:
    communicator = largest(reading)
    ranks = None if communicator is None else communicator.num_ranks
    words = "all ranks are on one node" if ranks is None else f"its {ranks} ranks are on one node"
    chosen = sorted(networks(reading))
    if chosen:
        words += f" (NCCL chose {listed(chosen)}, and sends nothing over it)"
    return SubjectAnswer(State.NOT_NEEDED, words)


def _told(reading: LogReading) -> dict[State, list[ProcessFacts]]:
    """Processes by what their network is."""
    found: dict[State, list[ProcessFacts]] = {}
    for process in reading.processes.values():
        if process.network is not None or process.provider is not None:
            found.setdefault(_of_process(process), []).append(process)
    return found


def _between(
    reading: LogReading, communicator: CommunicatorFacts
) -> Iterator[Mapping[Way, set[int]]]:
    """The ways of its pairs that are not known to be of one node."""
    nodes = nodes_of_ranks(reading, communicator)
    for pair, ways in communicator.paths.items():
        if is_between_nodes(nodes, pair) is not False:
            yield ways


def _of_process(process: ProcessFacts) -> State:
    return _of_name(process.network or "ofi", process.provider)


def _of_name(network: str, provider: str | None) -> State:
    """GPUDirect-TCPX is TCP, whose payload the NIC puts into the GPU's memory."""
    transport = of_network(network, provider)
    if transport is None:
        return State.UNKNOWN
    return State.OFF if transport in ("tcp", "tcpx") else State.ON


def _network_of(process: ProcessFacts) -> str:
    return process.network or f"libfabric's {process.provider}"


def _over(processes: Sequence[ProcessFacts]) -> str:
    adapters = {name: each for p in processes for name, each in p.adapters.items()}
    if not adapters:
        return f"over {listed(sorted({_network_of(p) for p in processes}))}"
    is_software = all((kind := kind_of(a)) is not None and kind.is_software for a in adapters)
    software = ", done in software" if is_software else ""
    return f"over {adapters_words(adapters.values())}{software}"


def _instead(processes: Sequence[ProcessFacts]) -> str:
    if all(map(uses_sockets, processes)):
        interfaces = sorted({name for p in processes for name in p.interfaces})
        over = f" over {listed(interfaces, most=_MOST_NAMES)}" if interfaces else ""
        return f"TCP sockets carry the job{over}"
    names = sorted({_network_of(p) for p in processes})
    if of_network(names[0], processes[0].provider) == "tcpx":
        return f"{listed(names)} is TCP, whose payload the NIC puts into GPU memory"
    return f"{listed(names)} sends over TCP"


def _by_channels(reading: LogReading) -> State | None:
    """By the devices of channels, where no line names the network: the middle of a log."""
    found = set()
    for communicator in reading.communicators.values():
        for devices in communicator.path_devices.values():
            names = {device.split("/")[1] for device in devices if "/" in device}
            found |= {_of_name(name, None) for name in names}
        if any(Way.SOCKETS in ways for ways in communicator.paths.values()):
            found.add(State.OFF)
    found.discard(State.UNKNOWN)
    if found >= {State.ON, State.OFF}:
        return State.PART
    return next(iter(found), None)


def _evidence(reading: LogReading) -> tuple[str, ...]:
    """A line of each way between nodes, and who chose what."""
    lines = _first_lines(reading, filter(is_of_network, Way))
    chosen = (
        f"{who(reading, (p.speaker for p in processes))}: network {name}"
        for name, processes in networks(reading).items()
    )
    return (*quoted(lines), *chosen)


def _first_lines(reading: LogReading, ways: Iterable[Way]) -> list[tuple[Place, str]]:
    wanted = set(ways)
    found = {
        way: line
        for communicator in reading.communicators.values()
        for (way, _), line in communicator.lines.items()
        if way in wanted
    }
    return sorted(found.values())


def _gdr(reading: LogReading, rdma: SubjectAnswer) -> SubjectAnswer:
    if rdma.state is State.NOT_NEEDED:
        return SubjectAnswer(State.NOT_NEEDED, "no NIC is used")
    states = GdrStates(reading)
    by_state: dict[GdrState, list[ProcessFacts]] = {}
    for process in reading.processes.values():
        if uses_sockets(process):
            continue
        by_state.setdefault(states.of_process(process), []).append(process)
    on, off = by_state.get(GdrState.ON, []), by_state.get(GdrState.OFF, [])
    lines = quoted(_first_lines(reading, (Way.GDRDMA, Way.NETWORK)))
    if on and off:
        words = f"off on {who(reading, (p.speaker for p in off))}"
        return SubjectAnswer(State.PART, words, lines)
    if on:
        return SubjectAnswer(State.ON, "the NICs read and write the GPUs' memory", lines)
    if off:
        return SubjectAnswer(State.OFF, "every byte goes through the host's memory", lines)
    if rdma.state is State.OFF:
        return SubjectAnswer(State.OFF, "TCP sockets go through the host's memory")
    return SubjectAnswer(State.UNKNOWN, "no line of a channel or an adapter says it")


def _nvlink(reading: LogReading) -> SubjectAnswer:
    """Inside nodes."""
    communicator = largest(reading)
    ways = set() if communicator is None else ways_inside(reading, communicator)
    lines = quoted(_first_lines(reading, (Way.P2P, Way.SHM, Way.NVLS)))
    if communicator is None or not (ways or communicator.has_nvls):
        return SubjectAnswer(State.UNKNOWN, "no line of a channel between GPUs of a node")
    if communicator.has_nvls or Way.NVLS in ways:
        return SubjectAnswer(State.ON, "NVLink SHARP is set up", lines)
    processes = reading.processes.values()
    if ways == {Way.P2P} and any(p.has_multicast or p.has_nvswitch for p in processes):
        return SubjectAnswer(State.ON, "an NVSwitch joins the GPUs", lines)
    distances = {each for each in all_p2p_distances(reading, communicator) if each is not None}
    state, words = _by_distance(ways, distances)
    return SubjectAnswer(state, words, lines)


def _by_distance(ways: set[Way], distances: set[str]) -> tuple[State, str]:
    slow = sorted(way.value for way in ways - {Way.P2P})
    if Way.P2P not in ways:
        return State.OFF, f"GPUs of a node talk over {listed(slow)}"
    if distances and distances <= BY_NVLINK:
        state = State.PART if slow else State.ON
        return state, f"some pairs use {listed(slow)}" if slow else "between the GPUs of a node"
    if distances & BY_PCIE:
        state = State.PART if distances & BY_NVLINK else State.OFF
        return state, "GPUs of a node talk over PCIe"
    return State.UNKNOWN, "P2P is NVLink or PCIe: NCCL_DEBUG_SUBSYS=INIT,GRAPH tells"


def _tcp(reading: LogReading) -> SubjectAnswer:
    """Do TCP sockets carry what goes between nodes?"""
    told = _told(reading)
    by_tcp = [p for p in told.get(State.OFF, []) if uses_sockets(p)]
    others = [p for processes in told.values() for p in processes if not uses_sockets(p)]
    if by_tcp and not others:
        return SubjectAnswer(State.ON, _instead(by_tcp), _evidence(reading))
    if by_tcp:
        return SubjectAnswer(State.PART, _instead(by_tcp), _evidence(reading))
    if others:
        words = f"the network is {listed(sorted({str(p.network) for p in others}))}"
        return SubjectAnswer(State.OFF, words, _evidence(reading))
    by_channels = _by_channels(reading)
    if by_channels in (State.ON, State.OFF):
        state = State.OFF if by_channels is State.ON else State.ON
        return SubjectAnswer(state, "by the channels of the log", _evidence(reading))
    return SubjectAnswer(State.UNKNOWN, _why_unknown(reading))
