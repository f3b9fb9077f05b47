"""Is GPUDirect RDMA on: do the NICs read and write the GPUs' memory? On, off, or unknown."""

from collections.abc import Iterator, Mapping, Sequence

from broadgauge.doctor.log.conclusions.conclusion import Conclusion, quoted
from broadgauge.doctor.log.facts import LogReading, ProcessFacts, Way
from broadgauge.doctor.log.gdr_state import GdrState, GdrStates
from broadgauge.doctor.log.job import (
    first_place,
    has_several_nodes,
    is_one_node,
    uses_sockets,
    variable,
    version_key,
)
from broadgauge.doctor.log.speakers import named, who
from broadgauge.specs.records.record import Confidence, Finding, Severity

_TRACE_FROM = (2, 30, 4)
"""From here on the lines of each GPU and adapter are TRACE, which releases do not print. Source:
NVIDIA/nccl v2.30.4 src/graph/paths.cc."""
_WITHOUT_NAME = (2, 22, 3)
"""The last that looks for the module's old name only. Source: NVIDIA/nccl issues 1537, 1676."""
_LOAD = (
    "load nvidia-peermem on the host (`modprobe nvidia-peermem`; in Kubernetes the ClusterPolicy's "
    "driver.rdma.enabled), or use a driver and kernel with DMA-BUF; NCCL 2.22.3 and older do not "
    "look for nvidia_peermem by that name (NVIDIA/nccl issue 1537)"
)
_LOAD_AMD = (
    "amdgpu-dkms together with the RDMA stack (ib_register_peer_memory_client in /proc/kallsyms), "
    "or a kernel with DMA-BUF for it and NCCL_DMABUF_ENABLE=1"
)
"""Source: ROCm documentation, GPU-enabled MPI; ROCm/rccl src/transport/net_ib.cc."""
_EXPLAINED = frozenset({"gdr_adapter", "gdr_pair"})


def gdr_mixed(reading: LogReading) -> Iterator[Conclusion]:
    """Some nodes have it and others don't: the slowest sets the pace of all."""
    states = GdrStates(reading)
    on, off = _hosts(states, GdrState.ON), _hosts(states, GdrState.OFF)
    off_only = {host: processes for host, processes in off.items() if host not in on}
    if not on or not off_only or is_one_node(reading):
        return
    processes = [process for each in off_only.values() for process in each]
    yield Conclusion(
        place=first_place(processes),
        finding=Finding(
            rule="gdr-mixed",
            severity=Severity.WARNING,
            symptom=f"GPUDirect RDMA is off on {named(off_only)} and on on {named(on)}",
            evidence=_signs(states, processes),
            cause="nvidia-peermem or DMA-BUF is missing on these nodes only",
            fix=f"on these nodes: {_LOAD}",
            confidence=Confidence.LIKELY,
        ),
        explains=_EXPLAINED,
    )


def gdr_off(reading: LogReading) -> Iterator[Conclusion]:
    """RDMA carries the job, and every byte still goes through the host's memory."""
    states = GdrStates(reading)
    if _hosts(states, GdrState.ON) or is_one_node(reading):
        return
    off = [each for each in _judged(states) if states.of_process(each) is GdrState.OFF]
    if not off:
        return
    cause, fix, confidence = _why(reading, off)
    yield Conclusion(
        place=first_place(off),
        finding=Finding(
            rule="gdr-off",
            severity=Severity.WARNING,
            symptom=f"GPUDirect RDMA is off on {who(reading, (p.speaker for p in off))}",
            evidence=_signs(states, off),
            cause=cause,
            fix=fix,
            confidence=confidence,
        ),
        explains=_EXPLAINED,
    )


def _why(reading: LogReading, off: Sequence[ProcessFacts]) -> tuple[str, str, Confidence]:
    level = variable(off, "NCCL_NET_GDR_LEVEL")
    if level is not None and level.upper() in ("0", "LOC"):
        return (
            f"NCCL_NET_GDR_LEVEL={level} switches it off",
            "unset NCCL_NET_GDR_LEVEL, or set it to PHB or SYS and measure",
            Confidence.CERTAIN,
        )
    is_refused = any(not can for process in off for can in process.gdr_by_adapter.values())
    if is_refused and reading.has_rccl:
        return (
            "neither amdgpu's peer memory nor DMA-BUF lets the adapters reach the GPUs' memory",
            _LOAD_AMD,
            Confidence.LIKELY,
        )
    old = _without_name(off)
    if is_refused and old is not None:
        return (
            f"NCCL {old}, as all up to 2.22.3 (NVIDIA/nccl issue 1537), does not look for "
            "nvidia_peermem by that name; or neither it nor DMA-BUF is there",
            "NCCL 2.23 or later; or DMA-BUF (the open kernel modules with Linux 5.12 and later); "
            "`lsmod | grep peermem` on the host tells whether the module is loaded at all",
            Confidence.LIKELY,
        )
    if is_refused:
        return (
            "neither nvidia-peermem nor DMA-BUF lets the adapters reach the GPUs' memory",
            _LOAD,
            Confidence.LIKELY,
        )
    if any(not near for process in off for near in process.gdr_by_pair.values()):
        return (
            "the adapters could, and are too far from the GPUs by NCCL's measure: not below one "
            "PCIe switch, or a virtual machine hides the topology",
            "`nvidia-smi topo -m`: which NIC is near which GPU? NCCL_NET_GDR_LEVEL=PHB or SYS "
            "allows longer ways: measure both. In a virtual machine NCCL_TOPO_FILE tells the truth",
            Confidence.LIKELY,
        )
    return (
        "the channels between nodes go over the adapters without GDRDMA, and no line says why",
        f"run once with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,NET,GRAPH. Most often: {_LOAD}",
        Confidence.POSSIBLE,
    )


def _without_name(off: Sequence[ProcessFacts]) -> str | None:
    """The version of NCCL, where it is too old to know the module's name."""
    versions = {process.version for process in off if process.version is not None}
    keys = [version_key(version) for version in versions]
    is_old = bool(keys) and all(key is not None and key <= _WITHOUT_NAME for key in keys)
    return min(versions) if is_old else None


def gdr_too_far(reading: LogReading) -> Iterator[Conclusion]:
    """A GPU that no adapter is near to, beside others that have one.

    That most pairs are too far is usual: a GPU uses the NIC beside it.
    """
    users = _users(reading)
    if not _hosts(GdrStates(reading), GdrState.ON):
        return
    near = {
        (p.speaker.host, gpu)
        for p in users
        for (gpu, _), is_near in p.gdr_by_pair.items()
        if is_near
    }
    told = {(p.speaker.host, gpu): p for p in users for gpu, _ in p.gdr_by_pair}
    far = {key: process for key, process in told.items() if key not in near}
    if not far:
        return
    yield Conclusion(
        place=first_place(far.values()),
        finding=Finding(
            rule="gdr-too-far",
            severity=Severity.WARNING,
            symptom=(
                f"no adapter is near enough for GPUDirect RDMA to "
                f"{named(f'GPU {gpu} of {host}' for host, gpu in far)}"
            ),
            evidence=("other GPUs have one: every adapter is disabled by its distance here",),
            cause="the GPU's PCIe switch has no NIC, or the machine's topology is hidden",
            fix="`nvidia-smi topo -m`; NCCL_NET_GDR_LEVEL=PHB or SYS allows longer ways: measure",
            confidence=Confidence.LIKELY,
        ),
        explains=frozenset({"gdr_pair"}),
    )


def gdr_unknown(reading: LogReading) -> Iterator[Conclusion]:
    """RDMA between nodes, and the log does not say whether through the host's memory."""
    users = _users(reading)
    states = set(map(GdrStates(reading).of_process, users))
    if not has_several_nodes(reading) or states != {GdrState.UNKNOWN}:
        return
    versions = [version_key(process.version) for process in users]
    is_trace = any(version is not None and version >= _TRACE_FROM for version in versions)
    yield Conclusion(
        place=first_place(users),
        finding=Finding(
            rule="gdr-unknown",
            severity=Severity.INFO,
            symptom="whether GPUDirect RDMA is used is unknown",
            evidence=(_no_channel(reading),),
            cause=(
                "this version prints no line of each GPU and adapter; channels are in the log of "
                "NCCL_DEBUG_SUBSYS=INIT,NET"
                if is_trace
                else "the lines of subsystem NET are not in the log"
            ),
            fix=(
                "run once with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,NET; or look at the "
                "host: `lsmod | grep peermem`"
            ),
            confidence=Confidence.LIKELY,
        ),
    )


def _no_channel(reading: LogReading) -> str:
    ways = {way for c in reading.communicators.values() for of in c.paths.values() for way in of}
    if ways & {Way.GDRDMA, Way.NETWORK}:
        return "channels over the network are listed, and not whose they are"
    return "no line of a channel over the network is in the log"


def _judged(states: GdrStates) -> list[ProcessFacts]:
    """Those whose channels between nodes are listed, which is proof; all, where none are."""
    users = _users(states.reading)
    return [process for process in users if states.sends_between_nodes(process)] or users


def _users(reading: LogReading) -> list[ProcessFacts]:
    """Processes whose network may read and write GPU memory."""
    return [p for p in reading.processes.values() if p.network is not None and not uses_sockets(p)]


def _hosts(states: GdrStates, state: GdrState) -> Mapping[str, list[ProcessFacts]]:
    hosts: dict[str, list[ProcessFacts]] = {}
    for process in _judged(states):
        if states.of_process(process) is state:
            hosts.setdefault(process.speaker.host, []).append(process)
    return hosts


def _signs(states: GdrStates, processes: Sequence[ProcessFacts]) -> tuple[str, ...]:
    reading = states.reading
    lines = [line for seen in reading.seen if seen.rule.tells in _EXPLAINED for line in seen.lines]
    ours = {process.speaker for process in processes}
    without = [
        communicator.lines[Way.NETWORK, True]
        for communicator in reading.communicators.values()
        if (Way.NETWORK, True) in communicator.lines and ours & set(communicator.members.values())
    ]
    disabled = sorted(
        {name for p in processes for name, can in p.gdr_by_adapter.items() if not can}
    )
    words = (f"disabled for {named(disabled)}",) if disabled else ()
    channels = [each for process in processes for each in states.staged_channels(process)]
    told = (f"{len(channels)} channels between nodes without GDRDMA",) if channels else ()
    return (*quoted([*lines, *without]), *words, *told)
