"""Do TCP sockets between nodes carry what their link could, and over the right interface?"""

import re
from collections.abc import Iterator, Sequence

from broadgauge.doctor.log.conclusions.conclusion import Conclusion
from broadgauge.doctor.log.conclusions.limits import DEFAULT_GBPS, FEW_STREAMS
from broadgauge.doctor.log.facts import LogReading, ProcessFacts
from broadgauge.doctor.log.job import (
    first_place,
    has_several_nodes,
    is_one_node,
    largest,
    uses_sockets,
)
from broadgauge.doctor.log.speakers import named, who
from broadgauge.specs.records.record import Confidence, Finding, Severity

_ONE_HOST = re.compile(
    r"lo|(docker|virbr|cni|podman|lxcbr|lxdbr|br-|kube-bridge|nodelocaldns)[\w.-]*|veth[0-9a-f]{5,}"
)
"""Bridges, hosts' ends of containers' links, and loopback: addresses that are the same on every
host, or lead to its containers. Not `flannel.1`, `vxlan.calico` or `cilium_host`, which do lead to
other nodes."""
_UNCONNECTED = frozenset(
    {"connect-failed", "connect-gave-up", "connect-gave-up-unnamed", "accept-gave-up"}
)
"""Rules of lines that follow where all interfaces lead to no other host."""
_ONE_HOSTS_ADDRESS = re.compile(r"127\.|169\.254\.|172\.17\.|fe80:", re.IGNORECASE)


def few_streams(reading: LogReading) -> Iterator[Conclusion]:
    """The trap of virtual interfaces: NCCL takes them for 10 Gbit/s and opens few streams."""
    users = [process for process in reading.processes.values() if uses_sockets(process)]
    if not users or not has_several_nodes(reading):
        return
    leading = {name for p in users for name in p.interfaces if not _leads_nowhere(p, name)}
    unread = sorted({name for p in users for name in p.default_speed_interfaces} & leading)
    slowest_gbps = min((p.seen_gbps for p in users if p.seen_gbps is not None), default=None)
    taken = bool(unread) or slowest_gbps == DEFAULT_GBPS
    streams = _streams(reading, users)
    if not taken or (streams is not None and streams > FEW_STREAMS):
        return
    what = named(unread or leading) or "its NIC"
    is_sure = bool(unread) and streams is not None
    yield Conclusion(
        place=first_place(users),
        finding=Finding(
            rule="socket-streams-few",
            severity=Severity.WARNING if unread else Severity.INFO,
            symptom=(
                f"NCCL takes {what} for {DEFAULT_GBPS:g} Gbit/s and opens "
                f"{'few' if streams is None else streams} TCP "
                f"{'stream' if streams == 1 else 'streams'} between two nodes"
            ),
            evidence=_parallel(reading, users),
            cause=(
                "the speed of a virtual interface (veth, virtio) can't be read or is nominal; "
                "NCCL plans its channels by it, and a faster link stays unfilled"
                if unread
                else "a veth says 10 Gbit/s whatever it carries; a real 10GbE NIC is well served"
            ),
            fix=(
                "try NCCL_MIN_NCHANNELS=8, or NCCL_SOCKET_NTHREADS=4 with "
                "NCCL_NSOCKS_PERTHREAD=4, and measure again: more threads can also lower it "
                "(NVIDIA/nccl issue 450: 4 to 6 GB/s became 1.2 to 1.5); or give the NIC its real "
                "`speed` in a file of NCCL_TOPO_FILE"
            ),
            confidence=Confidence.LIKELY if is_sure else Confidence.POSSIBLE,
        ),
        explains=frozenset({"default_speed"}),
    )


def _streams(reading: LogReading, users: Sequence[ProcessFacts]) -> int | None:
    """Channels x threads x sockets. Without a line about threads and sockets NCCL uses one of each.

    None: the number of channels is not known. Source: src/transport/net_socket.cc (2.30.7).
    """
    communicator = largest(reading)
    if communicator is None or communicator.num_channels is None:
        return None
    threads = min((p.socket_threads for p in users if p.socket_threads), default=1)
    sockets = min((p.sockets_per_thread for p in users if p.sockets_per_thread), default=1)
    return communicator.num_channels * max(1, threads) * max(1, sockets)


def _parallel(reading: LogReading, users: Sequence[ProcessFacts]) -> tuple[str, ...]:
    communicator = largest(reading)
    channels = None if communicator is None else communicator.num_channels
    threads = {(p.socket_threads, p.sockets_per_thread) for p in users if p.socket_threads}
    told = [f"{number} threads of {each} sockets" for number, each in sorted(threads)]
    return (
        "channels: unknown" if channels is None else f"{channels} channels",
        *(told or ["no line about threads and sockets: one socket a channel"]),
    )


def wrong_interface(reading: LogReading) -> Iterator[Conclusion]:
    """An interface that leads to no other host, in a job with several; a note, where it is one."""
    if is_one_node(reading):
        yield from _would_be_wrong(reading)
    if not has_several_nodes(reading) or len({speaker.host for speaker in reading.processes}) < 2:
        return
    by_words: dict[tuple[str, bool], list[ProcessFacts]] = {}
    for process in reading.processes.values():
        used = _used(process)
        wrong = {name for name in used if _leads_nowhere(process, name)}
        if wrong:
            key = (named(wrong), wrong == used)
            by_words.setdefault(key, []).append(process)
    for (names, is_all), processes in by_words.items():
        yield Conclusion(
            place=first_place(processes),
            finding=_wrong(reading, names, is_all=is_all),
            explains=_UNCONNECTED if is_all else frozenset(),
        )


def _would_be_wrong(reading: LogReading) -> Iterator[Conclusion]:
    """Nothing goes over them here: said for who goes on to a second node."""
    users = [process for process in reading.processes.values() if uses_sockets(process)]
    names = {name for p in users for name in p.interfaces if _leads_nowhere(p, name)}
    if not names or names == {name for p in users for name in p.interfaces}:
        return
    finding = _wrong(reading, named(names), is_all=False)
    note = {
        "severity": Severity.INFO,
        "symptom": f"between nodes NCCL would use {named(names)}, too",
    }
    yield Conclusion(place=first_place(users), finding=finding.model_copy(update=note))


def _wrong(reading: LogReading, names: str, *, is_all: bool) -> Finding:
    return Finding(
        rule="interface-of-one-host",
        severity=Severity.ERROR if is_all else Severity.WARNING,
        symptom=(
            f"NCCL uses {names} between nodes, which leads to no other host"
            if is_all
            else f"NCCL uses {names} beside others, which leads to no other host"
        ),
        evidence=tuple(_interfaces(reading)),
        cause="a bridge or loopback: its address is the same, or unknown, on other hosts",
        fix=(
            "NCCL_SOCKET_IFNAME= the interface that all nodes share (`=eth0` for exactly that), "
            "or exclude these: `^docker,lo,virbr,cni`"
        ),
        confidence=Confidence.LIKELY,
    )


def _used(process: ProcessFacts) -> set[str]:
    """For the bootstrap, and for data where sockets carry it."""
    names = set(process.interfaces) if uses_sockets(process) else set()
    return names if process.bootstrap is None else {*names, process.bootstrap}


def _leads_nowhere(process: ProcessFacts, interface: str) -> bool:
    if _ONE_HOST.fullmatch(interface) is not None:
        return True
    return _ONE_HOSTS_ADDRESS.match(process.addresses.get(interface, "")) is not None


def _interfaces(reading: LogReading) -> Iterator[str]:
    by_words: dict[str, list[ProcessFacts]] = {}
    for process in reading.processes.values():
        used = sorted(_used(process))
        if used:
            words = ", ".join(f"{name} {process.addresses.get(name, '')}".strip() for name in used)
            by_words.setdefault(words, []).append(process)
    for words, processes in list(by_words.items())[:3]:
        yield f"{who(reading, (p.speaker for p in processes))}: {words}"
