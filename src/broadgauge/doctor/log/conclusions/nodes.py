"""Does NCCL take for nodes what the hosts are?"""

from collections.abc import Iterator

from broadgauge.doctor.log.conclusions.conclusion import Conclusion
from broadgauge.doctor.log.facts import CommunicatorFacts, LogReading, Way
from broadgauge.doctor.log.job import NO_P2P_LEVELS, is_on, largest, variable
from broadgauge.doctor.log.speakers import named
from broadgauge.specs.records.record import Confidence, Finding, Severity


def nodes_are_hosts(reading: LogReading) -> Iterator[Conclusion]:
    """More or fewer nodes than hosts, where the log has every rank."""
    communicator = largest(reading)
    if communicator is None or communicator.num_nodes is None or not _is_complete(communicator):
        return
    hosts = {speaker.host for speaker in communicator.members.values()}
    nodes = communicator.num_nodes
    if nodes == len(hosts):
        return
    finding = _more(reading, hosts, nodes) if nodes > len(hosts) else _fewer(communicator, hosts)
    if finding is not None:
        yield Conclusion(place=communicator.place, finding=finding)


def _is_complete(communicator: CommunicatorFacts) -> bool:
    """Are the hosts of all its ranks known?"""
    return communicator.num_ranks == len(communicator.members)


def _more(reading: LogReading, hosts: set[str], nodes: int) -> Finding:
    processes = list(reading.processes.values())
    identity = variable(processes, "NCCL_HOSTID")
    off = [
        f"{name}={value}"
        for name in ("NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE")
        if is_on(value := variable(processes, name))
    ]
    level = variable(processes, "NCCL_P2P_LEVEL")
    if level is not None and level.upper() in NO_P2P_LEVELS:
        off.append(f"NCCL_P2P_LEVEL={level}")
    told = identity is not None or bool(off)
    known = (
        f"NCCL_HOSTID tells them apart: {identity}, for example"
        if identity is not None
        else f"{' and '.join(off)}: GPUs that reach each other by no other way than the network "
        "are nodes for NCCL"
    )
    return Finding(
        rule="nodes-more-than-hosts",
        severity=Severity.INFO if told else Severity.WARNING,
        symptom=f"NCCL takes {named(hosts)} for {nodes} nodes",
        evidence=(f"nNodes {nodes}", f"hosts: {named(hosts)}"),
        cause=(
            known
            if told
            else "several containers of one host, or hosts of the same name: between them NCCL "
            "uses the network, also where NVLink joins the GPUs"
        ),
        fix=(
            None
            if told
            else "one container for all GPUs of a host; NCCL_HOSTID the same in all of its "
            "containers, with /dev/shm and the IPC namespace shared"
        ),
        confidence=Confidence.CERTAIN if told else Confidence.LIKELY,
    )


def _fewer(communicator: CommunicatorFacts, hosts: set[str]) -> Finding | None:
    between = {
        way
        for (a, b), ways in communicator.paths.items()
        if communicator.members[a].host != communicator.members[b].host
        for way in ways
    }
    joined = Way.P2P in between
    return Finding(
        rule="nodes-fewer-than-hosts",
        severity=Severity.INFO if joined else Severity.WARNING,
        symptom=f"NCCL takes {len(hosts)} hosts for {communicator.num_nodes} nodes",
        evidence=(f"nNodes {communicator.num_nodes}", f"hosts: {named(hosts)}"),
        cause=(
            "NVLink joins the hosts (MNNVL), and NCCL counts them as one"
            if joined
            else "NCCL_HOSTID or the identity of the machine is the same on different hosts: NCCL "
            "tries P2P and shared memory where there is none"
        ),
        fix=None if joined else "another NCCL_HOSTID for each host, or none",
        confidence=Confidence.LIKELY,
    )
