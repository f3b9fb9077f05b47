"""Do processes of one job differ in what must agree: network, interfaces, versions, settings?"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from broadgauge.doctor.log.conclusions.conclusion import Conclusion
from broadgauge.doctor.log.facts import LogReading, ProcessFacts
from broadgauge.doctor.log.job import first_place, is_on, largest, variable
from broadgauge.doctor.log.speakers import who
from broadgauge.specs.records.record import Confidence, Finding, Severity

_MOST_SHOWN = 3
_FILE_OF_A_MACHINE = "NCCL_TOPO_FILE"
_MUST_AGREE = (
    "NCCL_ALGO",
    "NCCL_BUFFSIZE",
    "NCCL_COLLNET_ENABLE",
    "NCCL_CROSS_NIC",
    "NCCL_IB_DISABLE",
    "NCCL_MAX_CTAS",
    "NCCL_MAX_NCHANNELS",
    "NCCL_MIN_CTAS",
    "NCCL_MIN_NCHANNELS",
    "NCCL_NET",
    "NCCL_NET_PLUGIN",
    "NCCL_NSOCKS_PERTHREAD",
    "NCCL_NTHREADS",
    "NCCL_NVLS_ENABLE",
    "NCCL_P2P_NET_CHUNKSIZE",
    "NCCL_PROTO",
    "NCCL_SOCKET_NTHREADS",
    _FILE_OF_A_MACHINE,
)
"""Both ends of a connection, or all ranks of a collective, plan with these. Source: NVIDIA's guide
to NCCL, environment variables; src/transport/net_socket.cc compares sockets of both ends."""


def networks_differ(reading: LogReading) -> Iterator[Conclusion]:
    yield from _differ(
        _members(reading),
        reading,
        lambda process: process.network,
        rule="networks-differ",
        severity=Severity.ERROR,
        symptom="ranks of one job chose different networks",
        cause="adapters, plugins or variables differ between hosts; such ranks can't connect",
        fix="make the image, the RDMA resources and NCCL_NET, NCCL_IB_* the same on every host",
    )


def adapters_differ(reading: LogReading) -> Iterator[Conclusion]:
    """Ranks of one communicator that have different numbers of adapters.

    NCCL 2.30 refuses that by itself, unless NCCL_IGNORE_NET_MISMATCH says otherwise: channels are
    then made to adapters that the other side does not have. Source: NVIDIA/nccl src/graph/topo.cc.
    """
    ib = [p for p in _members(reading) if p.adapters and p.network is not None]
    by_names: dict[str, list[ProcessFacts]] = {}
    for process in ib:
        by_names.setdefault(", ".join(sorted(process.adapters)), []).append(process)
    counts = {len(processes[0].adapters) for processes in by_names.values()}
    if len(counts) < 2:
        return
    ignored = variable(ib, "NCCL_IGNORE_NET_MISMATCH")
    is_silenced = is_on(ignored)
    told = [
        f"{who(reading, (p.speaker for p in processes))}: {names}"
        for names, processes in by_names.items()
    ]
    silenced = f", and NCCL_IGNORE_NET_MISMATCH={ignored} hides it" if is_silenced else ""
    yield Conclusion(
        place=first_place(ib),
        finding=Finding(
            rule="adapters-differ",
            severity=Severity.ERROR if is_silenced else Severity.WARNING,
            symptom=f"ranks have different adapters ({'; '.join(told[:2])}){silenced}",
            evidence=tuple(told[:_MOST_SHOWN]),
            cause=(
                "channels of one side have no adapter on the other: they hang, or all go over "
                "those that both have"
            ),
            fix=(
                "give each container the same adapters (/dev/infiniband/uverbs* of all), or name "
                "those that all have in NCCL_IB_HCA"
                + ("; unset NCCL_IGNORE_NET_MISMATCH" if is_silenced else "")
            ),
            confidence=Confidence.LIKELY,
        ),
    )


def channels_differ(reading: LogReading) -> Iterator[Conclusion]:
    """Ranks whose machine allows fewer rings than others': NCCL takes the fewest for all.

    Only of a job with one communicator: of others nobody says whose search it was. Source:
    NVIDIA/nccl src/init.cc, initTransportsRank, graphs[a].nChannels.
    """
    if len(reading.communicators) != 1:
        return
    told = [process for process in _members(reading) if process.ring_channels is not None]
    fewest = min((process.ring_channels or 0 for process in told), default=0)
    fewer = [process.speaker for process in told if process.ring_channels == fewest]
    most = max((process.ring_channels or 0 for process in told), default=0)
    yield from _differ(
        told,
        reading,
        lambda process: f"{process.ring_channels} channels",
        rule="channels-differ",
        severity=Severity.WARNING,
        symptom=(
            f"the machine of {who(reading, fewer)} allows {fewest} channels and that of others "
            f"{most}: all use {fewest}"
        ),
        cause="adapters, NVLink or the picture of the machine (NCCL_TOPO_FILE, a VM) differ there",
        fix="`nvidia-smi topo -m` and `ibv_devinfo -l` on both; the same machine type and image",
    )


def plugins_differ(reading: LogReading) -> Iterator[Conclusion]:
    """A network plugin that some processes loaded and others did not, or another one."""
    members = _members(reading)
    if not any(process.plugin for process in members):
        return
    told = [p for p in members if p.plugin is not None or p.missing_plugins or p.failed_plugins]
    yield from _differ(
        told,
        reading,
        lambda process: process.plugin or "none",
        rule="plugins-differ",
        severity=Severity.WARNING,
        symptom="ranks of one job loaded different network plugins",
        cause="images or LD_LIBRARY_PATH differ between hosts: networks that can't join, or slow",
        fix="the same image and LD_LIBRARY_PATH everywhere; `ldd` of the plugin where it lacks",
    )


def versions_differ(reading: LogReading) -> Iterator[Conclusion]:
    yield from _differ(
        _members(reading),
        reading,
        lambda process: process.version,
        rule="nccl-versions-differ",
        severity=Severity.ERROR,
        symptom="ranks of one job run different versions of NCCL",
        cause="images or LD_LIBRARY_PATH differ between hosts, or the logs are of several jobs",
        fix="the same image everywhere; `NCCL_DEBUG=VERSION` names the version that is loaded",
        explains=frozenset({"message-truncated", "version-mismatch"}),
    )


def interfaces_differ(reading: LogReading) -> Iterator[Conclusion]:
    """By name; their addresses always do."""
    yield from _differ(
        _members(reading),
        reading,
        _interface_names,
        rule="interfaces-differ",
        severity=Severity.INFO,
        symptom="ranks use interfaces of different names",
        cause="hosts name their NICs differently, or their routes do not lead the same way",
        fix="are these on one network? If not, NCCL_SOCKET_IFNAME has to name each host's own",
    )


def _interface_names(process: ProcessFacts) -> str | None:
    if process.interfaces:
        return ", ".join(sorted(process.interfaces))
    return process.bootstrap


def settings_differ(reading: LogReading) -> Iterator[Conclusion]:
    """Variables that some processes set and others don't, or set to something else.

    Only among processes that say any variable at all: others do not log them.
    """
    told = [process for process in _members(reading) if process.variables]
    for name in _MUST_AGREE:
        by_value = _grouped(told, lambda p, name=name: _setting(p, name))  # type: ignore[misc]
        if len(by_value) < 2:
            continue
        yield Conclusion(
            place=first_place(told),
            finding=Finding(
                rule="settings-differ",
                severity=Severity.WARNING,
                symptom=f"{name} is not the same on all ranks",
                evidence=_shown(reading, by_value),
                cause="ranks plan their part of a collective by it: they hang, fail or are slow",
                fix=f"set {name} for all ranks alike, in the job and not in one host's profile",
                confidence=Confidence.LIKELY,
            ),
        )


def _setting(process: ProcessFacts, name: str) -> str:
    """A machine's own file may be elsewhere on each host."""
    value = process.variables.get(name, "unset")
    return "set" if name == _FILE_OF_A_MACHINE and value != "unset" else value


def _differ(
    processes: Sequence[ProcessFacts],
    reading: LogReading,
    fact: Callable[[ProcessFacts], str | None],
    *,
    rule: str,
    severity: Severity,
    symptom: str,
    cause: str,
    fix: str,
    explains: frozenset[str] = frozenset(),
) -> Iterator[Conclusion]:
    by_value = _grouped(processes, fact)
    if len(by_value) < 2:
        return
    yield Conclusion(
        place=first_place(process for several in by_value.values() for process in several),
        finding=Finding(
            rule=rule,
            severity=severity,
            symptom=symptom,
            evidence=_shown(reading, by_value),
            cause=cause,
            fix=fix,
            confidence=Confidence.LIKELY,
        ),
        explains=explains,
    )


def _members(reading: LogReading) -> list[ProcessFacts]:
    """Of the largest communicator, where its members are known: logs may hold several jobs."""
    communicator = largest(reading)
    known = [] if communicator is None else list(dict.fromkeys(communicator.members.values()))
    members = [reading.processes[speaker] for speaker in known if speaker in reading.processes]
    return members if len(members) > 1 else list(reading.processes.values())


def _grouped(
    processes: Sequence[ProcessFacts], fact: Callable[[ProcessFacts], str | None]
) -> dict[str, list[ProcessFacts]]:
    groups: dict[str, list[ProcessFacts]] = {}
    for process in processes:
        value = fact(process)
        if value is not None:
            groups.setdefault(value, []).append(process)
    return groups


def _shown(reading: LogReading, by_value: Mapping[str, Sequence[ProcessFacts]]) -> tuple[str, ...]:
    """The rarest first, which is most often the odd one."""
    rarest = sorted(by_value.items(), key=lambda item: len(item[1]))
    lines = [
        f"{processes[0].place}: {value}: {who(reading, (p.speaker for p in processes))}"
        for value, processes in rarest[:_MOST_SHOWN]
    ]
    left = len(rarest) - _MOST_SHOWN
    return (*lines, *((f"and {left} more",) if left > 0 else ()))
