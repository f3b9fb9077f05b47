"""Which settings are known to cost speed where they were left behind?"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from broadgauge.doctor.host.asking import can_use_rdma, gpus_here
from broadgauge.doctor.host.variable_evidence import Variables
from broadgauge.specs.records.record import Confidence, Finding, Severity

Where = Literal["gpus", "hcas", "rdma", "anywhere"]
"""On which machines it costs something: two GPUs, adapters, RDMA that works. Where the machine is
unknown, it is said as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trap:
    names: tuple[str, ...]
    values: tuple[str, ...] = ()
    """In lower case; none: whatever it is set to."""
    where: Where = "anywhere"
    severity: Severity = Severity.WARNING
    symptom: str
    cause: str
    fix: str


_TRAPS = (
    _Trap(
        names=("NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL"),
        values=("1", "loc"),
        where="gpus",
        symptom="GPUs of a node may not reach each other directly: no NVLink, no PCIe peer-to-peer",
        cause="left from a machine or version where peer-to-peer hung",
        fix="unset it; where peer-to-peer hangs, turn ACS and the IOMMU off instead",
    ),
    _Trap(
        names=("NCCL_SHM_DISABLE",),
        values=("1",),
        where="gpus",
        symptom="no shared memory between processes: what P2P can't carry goes by the network",
        cause="left from a container with a small /dev/shm",
        fix="unset it, and give the container a larger /dev/shm",
    ),
    _Trap(
        names=("NCCL_IB_DISABLE",),
        values=("1",),
        where="hcas",
        symptom="InfiniBand and RoCE are turned off: NCCL will use sockets",
        cause="left from a network without RDMA, or from a test",
        fix="unset it",
    ),
    _Trap(
        names=("NCCL_NET",),
        values=("socket",),
        where="rdma",
        symptom="sockets are asked for, whatever RDMA there is",
        cause="left from a test",
        fix="unset NCCL_NET, or NCCL_NET=IB",
    ),
    _Trap(
        names=("NCCL_NET_GDR_LEVEL",),
        values=("loc", "0"),
        where="hcas",
        symptom="GPUDirect RDMA is turned off",
        cause="left from a machine where it failed",
        fix="unset it: NCCL takes it where GPU and NIC are near",
    ),
    _Trap(
        names=("NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS"),
        values=("1", "2"),
        severity=Severity.WARNING,
        symptom="one or two channels at most: neither NVLink nor a fast network is filled",
        cause="left from a comparison, or to keep the GPU free",
        fix="unset it, and measure both",
    ),
    _Trap(
        names=("NCCL_ALGO", "NCCL_PROTO"),
        severity=Severity.INFO,
        symptom="algorithm or protocol is fixed for every size and collective",
        cause="NCCL chooses by size; a fixed one is slow elsewhere, and LL128 may be unsafe",
        fix="unset it, and measure small and large messages both ways",
    ),
    _Trap(
        names=("NCCL_MIN_NCHANNELS", "NCCL_MIN_CTAS", "NCCL_NTHREADS", "NCCL_BUFFSIZE"),
        severity=Severity.INFO,
        symptom="channels, threads or buffers are fixed",
        cause="more fill a network, and take the GPU's processors and memory from the model",
        fix="measure the training with and without, not only the collectives",
    ),
    _Trap(
        names=("NCCL_NVLS_ENABLE",),
        values=("0",),
        where="gpus",
        severity=Severity.INFO,
        symptom="NVLink SHARP is off",
        cause="it saves traffic where NVSwitches have it, and memory where it is off",
        fix="unset it, and measure both",
    ),
    _Trap(
        names=("NCCL_TOPO_FILE",),
        severity=Severity.INFO,
        symptom="NCCL takes this file for the machine, whatever the machine is",
        cause="a file of another machine or instance type gives wrong rings, NICs and distances",
        fix="right in a virtual machine, with the file of exactly this type; elsewhere unset it",
    ),
    _Trap(
        names=("NCCL_IGNORE_NET_MISMATCH",),
        values=("1",),
        severity=Severity.INFO,
        symptom="ranks with different adapters are let pass, and may hang later",
        cause="left from a node whose adapters NCCL refused",
        fix="unset it, and give all nodes the same adapters",
    ),
    _Trap(
        names=("TORCH_NCCL_BLOCKING_WAIT", "NCCL_BLOCKING_WAIT"),
        values=("1", "true", "y", "yes"),
        severity=Severity.INFO,
        symptom="ranks block in wait(), and don't overlap collectives with computing",
        cause="a setting for finding hangs",
        fix="unset it; TORCH_NCCL_ASYNC_ERROR_HANDLING ends a job that hangs",
    ),
)


def trap_findings(asked: Variables) -> Iterator[Finding]:
    """One finding a trap."""
    for trap in _TRAPS:
        names = [name for name in trap.names if _is_set(asked, name, trap)]
        if not names or not _matters(asked, trap.where):
            continue
        yield Finding(
            rule="host-variable-trap",
            severity=trap.severity,
            symptom=f"{' and '.join(names)}: {trap.symptom}",
            evidence=(asked.evidence(*names),),
            cause=trap.cause,
            fix=trap.fix,
            confidence=Confidence.LIKELY,
        )


def _is_set(asked: Variables, name: str, trap: _Trap) -> bool:
    value = asked.values.get(name, "").strip().lower()
    return bool(value) and (not trap.values or value in trap.values)


def _matters(asked: Variables, where: Where) -> bool:
    facts = asked.facts
    if facts is None or where == "anywhere":
        return True
    if where == "gpus":
        return len(gpus_here(facts)) > 1
    return can_use_rdma(facts) if where == "rdma" else bool(facts.hcas)
