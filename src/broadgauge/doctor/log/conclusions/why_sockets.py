"""Why did NCCL fall through to TCP sockets? The first reason that the log shows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from broadgauge.doctor.log.facts import LogReading, Place, ProcessFacts
from broadgauge.doctor.log.job import SOCKET, external_plugins_failed, is_on, said, variable
from broadgauge.doctor.log.origins import EXTERNAL, subject_of
from broadgauge.specs.records.record import Confidence


@dataclass(frozen=True, slots=True, kw_only=True)
class WhySockets:
    """The reason, and what helps."""

    cause: str
    fix: str
    confidence: Confidence
    is_asked_for: bool = False
    """A variable asks for sockets."""
    lines: tuple[tuple[Place, str], ...] = ()
    explains: frozenset[str] = frozenset()
    """Ids of the rules whose lines these are."""


PLUGIN_FIX = (
    "`ldd` of the plugin inside the container shows what is missing or too old: where it is libc, "
    "a newer base image (or a plugin built for this one); of AWS: a newer EFA installer brings "
    "a newer libfabric; or an aws-ofi-nccl that was built for the one there"
)
_Reason = Callable[[LogReading, Sequence[ProcessFacts]], WhySockets | None]


def why_sockets(reading: LogReading, processes: Sequence[ProcessFacts]) -> WhySockets:
    """Of these processes, which use sockets. Where no line tells, that is what it says."""
    for reason in _REASONS:
        found = reason(reading, processes)
        if found is not None:
            return found
    return WhySockets(
        cause="NCCL found no adapter and no plugin that it could use; no line says why",
        fix="run once with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,ENV,NET, and look again",
        confidence=Confidence.POSSIBLE,
    )


def _net_variable(_reading: LogReading, processes: Sequence[ProcessFacts]) -> WhySockets | None:
    value = variable(processes, "NCCL_NET")
    if value is None or value.casefold() != SOCKET:
        return None
    return WhySockets(
        cause=f"NCCL_NET={value} asks for sockets",
        fix="unset NCCL_NET, and NCCL takes RDMA where it finds it",
        confidence=Confidence.CERTAIN,
        is_asked_for=True,
    )


def _ib_disabled(_reading: LogReading, processes: Sequence[ProcessFacts]) -> WhySockets | None:
    value = variable(processes, "NCCL_IB_DISABLE")
    if not is_on(value):
        return None
    return WhySockets(
        cause=f"NCCL_IB_DISABLE={value} switches NCCL's RDMA network off",
        fix="unset NCCL_IB_DISABLE, or set it to 0",
        confidence=Confidence.CERTAIN,
        is_asked_for=True,
    )


def _no_libibverbs(reading: LogReading, _processes: Sequence[ProcessFacts]) -> WhySockets | None:
    return _of_line(
        reading,
        ("libibverbs.so",),
        cause="libibverbs can't be loaded: the image lacks the user space of RDMA",
        fix="install rdma-core (Debian: libibverbs1, ibverbs-providers) in the image",
    )


def _no_interface(reading: LogReading, _processes: Sequence[ProcessFacts]) -> WhySockets | None:
    return _of_line(
        reading,
        ("NET/IB : No IP interface found", "NET/IB: No IP interface found"),
        cause="adapters are there, and no IP interface for setting up their connections",
        fix="give the pod or host an address, and let NCCL_SOCKET_IFNAME name its interface",
    )


def _can_not_open(reading: LogReading, _processes: Sequence[ProcessFacts]) -> WhySockets | None:
    return _of_line(
        reading,
        ("Unable to open device", "Unable to query device", "Unable to query port"),
        cause="an adapter is visible and can't be opened: /dev/infiniband is missing or refused",
        fix=(
            "give the container /dev/infiniband: in Kubernetes ask for the RDMA resource "
            "(`rdma/…`, or the SR-IOV one)"
        ),
    )


def _no_efa_device(reading: LogReading, _processes: Sequence[ProcessFacts]) -> WhySockets | None:
    return _of_line(
        reading,
        ("NET/OFI",),
        cause="the EFA plugin found no EFA device: none is in this container or instance",
        fix=(
            "give the container /dev/infiniband: in Kubernetes the resource vpc.amazonaws.com/efa, "
            "`--device=/dev/infiniband` for docker; `fi_info -p efa` inside shows them"
        ),
    )


def _no_device(reading: LogReading, processes: Sequence[ProcessFacts]) -> WhySockets | None:
    hca = variable(processes, "NCCL_IB_HCA")
    cause = "NCCL found no adapter: none is in this container or host, or no port of it is active"
    fix = (
        "`ibv_devinfo` inside the container: are adapters there, and is a port ACTIVE? In "
        "Kubernetes ask for the RDMA resource (`rdma/…`, or the SR-IOV one)"
    )
    if hca:
        cause = f"no adapter with an active port matches NCCL_IB_HCA={hca}, or there is none"
        fix = f"compare `ibv_devinfo -l` with NCCL_IB_HCA; without it: is one found? Then {fix}"
    phrases = ("NET/IB : No device found", "NET/IB: No device found")
    return _of_line(reading, phrases, cause=cause, fix=fix)


def _unloadable(_reading: LogReading, processes: Sequence[ProcessFacts]) -> WhySockets | None:
    """A plugin is there, and the linker says why it can't be loaded."""
    found = {name: why for p in processes for name, why in p.unloadable_plugins.items()}
    if not found:
        return None
    name, why = min(found.items())
    return WhySockets(
        cause=f"the network plugin {name} is there and can't be loaded: {why}",
        fix=PLUGIN_FIX,
        confidence=Confidence.CERTAIN,
    )


def _plugin_failed(reading: LogReading, processes: Sequence[ProcessFacts]) -> WhySockets | None:
    """A plugin was loaded and gave up."""
    names = {name for process in processes for name in external_plugins_failed(process)}
    if not names:
        return None
    name = min(names)
    own = [w for w in reading.unknown_warnings if subject_of(w.origin) == EXTERNAL]
    said_by_it = f": {own[0].text}" if own else ""
    return WhySockets(
        cause=f"the network plugin {name} could not be initialised{said_by_it}",
        fix=(
            "its devices, drivers and helpers must be in the container, and its version must fit "
            "NCCL's"
        ),
        confidence=Confidence.LIKELY,
    )


def _no_plugin(reading: LogReading, processes: Sequence[ProcessFacts]) -> WhySockets | None:
    """A plugin was asked for; that a plugin is looked for and not there is usual."""
    wanted = next((p.wanted_plugin for p in processes if p.wanted_plugin), None)
    asked = variable(processes, "NCCL_NET_PLUGIN") or variable(processes, "NCCL_NET") or wanted
    missing = {name for process in processes for name in process.missing_plugins}
    if asked is None or not missing or asked.casefold() in ("none", "ib"):
        return None
    name = min(missing)
    lines = tuple(line for seen in said(reading, name) for line in seen.lines)
    return WhySockets(
        cause=f"the plugin `{asked}` that is asked for can't be loaded: {name}",
        fix="put the plugin's folder into LD_LIBRARY_PATH in the image, with all that it needs",
        confidence=Confidence.CERTAIN,
        lines=lines,
    )


def _of_line(
    reading: LogReading, phrases: tuple[str, ...], *, cause: str, fix: str
) -> WhySockets | None:
    seen = next(said(reading, *phrases), None)
    if seen is None:
        return None
    return WhySockets(
        cause=cause,
        fix=fix,
        confidence=Confidence.LIKELY,
        lines=tuple(seen.lines),
        explains=frozenset({seen.rule.id}),
    )


_REASONS: tuple[_Reason, ...] = (
    _net_variable,
    _ib_disabled,
    _unloadable,
    _no_plugin,
    _no_efa_device,
    _plugin_failed,
    _no_libibverbs,
    _can_not_open,
    _no_interface,
    _no_device,
)
"""What a variable asks for comes before what a line tells."""
