"""Readings of jobs, made by hand: what a reader of logs would have filled in."""

from broadgauge.doctor.log.facts import (
    Adapter,
    CommunicatorFacts,
    LogReading,
    Place,
    ProcessFacts,
    Seen,
    Speaker,
    Way,
)
from broadgauge.doctor.log.rule import Rule

FILE = "job.log"


def a_reading(
    nodes: int = 2,
    gpus: int = 2,
    *,
    network: str = "IB",
    between: Way = Way.GDRDMA,
    inside: Way = Way.P2P,
) -> LogReading:
    """A healthy job: a process a GPU, a ring over all ranks, RDMA with GPUDirect between nodes."""
    reading = LogReading()
    communicator = CommunicatorFacts(
        identity="0xd6d083b90d00278e",
        place=Place(FILE, 1),
        num_ranks=nodes * gpus,
        num_nodes=nodes,
        num_channels=16,
        num_nvls_channels=16,
        has_nvls=True,
        has_trees=True,
    )
    for rank in range(nodes * gpus):
        who = Speaker(f"node{rank // gpus}", 100 + rank)
        reading.processes[who] = _a_process(who, rank, rank % gpus, network)
        communicator.members[rank] = who
        communicator.local_ranks[rank] = gpus
        communicator.started.add(rank)
        communicator.completed.add(rank)
    ring = tuple(range(nodes * gpus))
    communicator.rings = dict.fromkeys(range(16), ring)
    for a in ring:
        b = (a + 1) % len(ring)
        is_between = a // gpus != b // gpus
        way = between if is_between else inside
        communicator.paths[a, b] = {way: set(range(16))}
        line = f"Channel 00/0 : {a}[0] -> {b}[0] via {way}"
        communicator.lines.setdefault((way, is_between), (Place(FILE, 50 + a), line))
    reading.communicators[communicator.identity] = communicator
    return reading


def _a_process(who: Speaker, rank: int, device: int, network: str) -> ProcessFacts:
    process = ProcessFacts(
        speaker=who,
        place=Place(FILE, rank + 1),
        version="2.28.9",
        devices={device},
        network=network,
        bootstrap="eth0",
        addresses={"eth0": f"192.0.2.{rank % 250 + 1}"},
        interfaces=("eth0",) if network == "Socket" else (),
        init_s=1.5,
        bootstrap_s=0.1,
    )
    if network == "IB":
        name = f"mlx5_{device}"
        process.adapters = {f"{name}:1": Adapter(f"{name}:1", "RoCE", 400_000)}
        process.gdr_by_adapter = {name: True}
        process.dma_buf_devices = {device}
    return process


def on_sockets(nodes: int = 2, gpus: int = 2) -> LogReading:
    """A healthy job over TCP."""
    return a_reading(nodes, gpus, network="Socket", between=Way.SOCKETS)


def one_node(gpus: int = 8) -> LogReading:
    """A healthy job on one node with NVLink: the network is not used."""
    return a_reading(1, gpus, network="Socket")


def the_communicator(reading: LogReading) -> CommunicatorFacts:
    (communicator,) = reading.communicators.values()
    return communicator


def processes(reading: LogReading) -> list[ProcessFacts]:
    return list(reading.processes.values())


def set_everywhere(reading: LogReading, **variables: str) -> None:
    for process in processes(reading):
        process.variables.update(variables)


def a_rule(rule: str, says: str, *, tells: str | None = None, **finding: object) -> Rule:
    """With one finding."""
    text = {
        "severity": "warning",
        "symptom": "something is off",
        "cause": "it is",
        "fix": "mend it",
        "confidence": "likely",
    }
    return Rule.model_validate(
        {
            "id": rule,
            "means": "a test",
            "lines": [{"says": says}],
            "tells": tells,
            "finding": {**text, **finding},
            "source": "a test",
        }
    )


def saw(reading: LogReading, rule: Rule, line: str, at: int = 40, **fields: str) -> Seen:
    """One line of the rule, said by every process."""
    seen = Seen(
        rule=rule,
        fields=fields,
        count=len(reading.processes),
        lines=[(Place(FILE, at), line)],
        speakers=set(reading.processes),
    )
    reading.seen.append(seen)
    return seen
