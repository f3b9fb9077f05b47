"""Did a case send in the way that its network is meant to, and what is NCCL told for it?

A network that is found may say its transport. RDMA is no matter of speed alone: where NCCL falls
back to sockets, what is measured is another network.
"""

from collections.abc import Mapping
from typing import Any

from broadgauge.doctor.log.conclusions.why_sockets import WhySockets
from broadgauge.platforms.paths import SOCKETS_ONLY
from broadgauge.specs.case import Case
from broadgauge.specs.networks.face import NetworkFace
from broadgauge.specs.networks.transports import BY_VERBS
from broadgauge.specs.records.nccl import NcclUse
from broadgauge.specs.records.record import (
    Confidence,
    ErrorKind,
    Finding,
    Phase,
    Severity,
    TrialError,
)

NO_GPUDIRECT = {"NCCL_NET_GDR_LEVEL": "LOC"}
"""`LOC`: never. Source: docs.nvidia.com/deeplearning/nccl, "Environment Variables"."""
FELL_BACK = "not-sent-by-rdma"
NOT_SOCKETS = "not-sent-by-tcp"
NO_GDR = "no-gpudirect"
UNWANTED_GDR = "unwanted-gpudirect"
UNKNOWN = "transport-unknown"
_OF_PATHS = frozenset({"p2p-not-used", "network-inside-node", "nodes-more-than-hosts"})
_OF_SOCKETS = frozenset({"rdma-not-used"})
_OF_NO_GPUDIRECT = frozenset({"gdr-off", "gdr-too-far", "gdr-unknown"})
_WHAT_IS_MISSING = (
    "`broadgauge doctor --host` on the nodes says what is missing: an adapter, an active port, "
    "libibverbs or the plugin; to measure TCP say `transport: tcp`"
)


def transport_variables(case: Case) -> Mapping[str, str]:
    """Of this case: none where its network says nothing of how it sends."""
    return {} if case.link is None else face_variables(case.link.face)


def face_variables(found: NetworkFace | None) -> Mapping[str, str]:
    """What NCCL is told, so that it fails rather than takes another network.

    RoCE and InfiniBand are its network `IB`. Others need a plugin, whose name differs: these are
    left to NCCL and looked for in its log. Source: docs.nvidia.com/deeplearning/nccl, "Environment
    Variables", NCCL_NET.
    """
    if found is None or found.transport is None:
        return {}
    if found.is_sockets:
        return SOCKETS_ONLY
    network = {"NCCL_NET": "IB"} if found.transport in BY_VERBS else {}
    return network | (NO_GPUDIRECT if found.gpudirect is False else {})


def transport_finding(
    case: Case, nccl: NcclUse | None, why: WhySockets | None = None
) -> Finding | None:
    """What is otherwise than the network says, or can't be known. None: all is as it is meant.

    An error is a failed trial's: `transport_error`. `why`: the doctor's reason for sockets.
    """
    found = None if case.link is None or case.backend != "nccl" else case.link.face
    if found is None or found.transport is None:
        return None
    nccl = nccl or NcclUse()
    if found.is_sockets:
        return _other_than_sockets(case, nccl)
    return _other_than_rdma(case, found, nccl, why) or _other_gpudirect(case, found, nccl)


def rules_asked_for(case: Case) -> frozenset[str]:
    """Which of the doctor's warnings are of what the case itself asks for?"""
    if case.path is not None:
        return _OF_PATHS
    found = None if case.link is None else case.link.face
    if found is not None and found.is_sockets:
        return _OF_SOCKETS
    return _OF_NO_GPUDIRECT if found is not None and found.gpudirect is False else frozenset()


def transport_error(finding: Finding | None) -> TrialError | None:
    """A trial on another network than its case names is no measurement of that case."""
    if finding is None or finding.severity is not Severity.ERROR:
        return None
    cause = "" if finding.cause is None else f" ({finding.cause})"
    return TrialError(
        kind=ErrorKind.REFUSED,
        message=f"{finding.symptom}{cause}",
        phase=Phase.MEASURE,
        last_lines=finding.evidence,
    )


def _other_than_rdma(
    case: Case, found: NetworkFace, nccl: NcclUse, why: WhySockets | None
) -> Finding | None:
    network, name = nccl.network, _name(case)
    if _is_socket(network) or nccl.way("sockets") is not None:
        return Finding(
            rule=FELL_BACK,
            severity=Severity.ERROR,
            symptom=f"network {name} is meant as {found.transport_words}, and NCCL sent over TCP "
            "sockets",
            evidence=_evidence(nccl, "sockets"),
            **_why_sockets(case, why),
        )
    if network is None and nccl.way("GDRDMA") is None and nccl.way("network") is None:
        return _unknown(case, f"whether it sent by {found.transport_words}")
    return None


def _other_than_sockets(case: Case, nccl: NcclUse) -> Finding | None:
    network = nccl.network
    if network is None and not nccl.ways:
        return _unknown(case, "whether it sent over TCP")
    by_rdma = [way for name in ("GDRDMA", "network") if (way := nccl.way(name)) is not None]
    if not by_rdma and (network is None or _is_socket(network)):
        return None
    return Finding(
        rule=NOT_SOCKETS,
        severity=Severity.ERROR,
        symptom=f"network {_name(case)} is meant as TCP, and NCCL used the network "
        f"`{network or by_rdma[0].way}`",
        evidence=_evidence(nccl, "network", "GDRDMA"),
        cause=_own_choice(case) or "NCCL did not do as NCCL_NET=Socket says",
        fix="leave NCCL_NET, NCCL_NET_PLUGIN and NCCL_IB_DISABLE to Broadgauge",
        confidence=Confidence.CERTAIN,
    )


def _other_gpudirect(case: Case, found: NetworkFace, nccl: NcclUse) -> Finding | None:
    if found.gpudirect is None:
        return None
    direct, name = nccl.way("GDRDMA"), _name(case)
    if found.gpudirect is False and direct is not None:
        return Finding(
            rule=UNWANTED_GDR,
            severity=Severity.ERROR,
            symptom=f"network {name} is meant without GPUDirect, and {_pairs(direct.num_pairs)} "
            "used it",
            evidence=_evidence(nccl, "GDRDMA"),
            cause=_own_choice(case) or "NCCL did not do as NCCL_NET_GDR_LEVEL=LOC says",
            fix="leave NCCL_NET_GDR_LEVEL to Broadgauge",
            confidence=Confidence.CERTAIN,
        )
    staged = nccl.way("network")
    if found.gpudirect is True and direct is None:
        if staged is None and nccl.gpudirect is not False:
            return _unknown(case, "whether the NICs read and write the GPUs' memory")
        return Finding(
            rule=NO_GDR,
            severity=Severity.ERROR,
            symptom=f"network {name} is meant with GPUDirect, and NCCL copied through the host's "
            "memory",
            evidence=_evidence(nccl, "network"),
            cause="neither nvidia-peermem nor DMA-BUF is there, or GPU and NIC are too far apart",
            fix="`modprobe nvidia-peermem`, or a kernel and driver with DMA-BUF; in virtual "
            "machines ACS and the PCI topology; else say `gpudirect: false`",
            confidence=Confidence.LIKELY,
        )
    return None


def _unknown(case: Case, what: str) -> Finding:
    return Finding(
        rule=UNKNOWN,
        severity=Severity.WARNING,
        symptom=f"network {_name(case)}: NCCL's log does not say {what}",
        cause="its log was not there, or NCCL_DEBUG or NCCL_DEBUG_SUBSYS is set to say less",
        fix="leave NCCL_DEBUG, NCCL_DEBUG_SUBSYS and NCCL_DEBUG_FILE to Broadgauge",
        confidence=Confidence.LIKELY,
    )


def _evidence(nccl: NcclUse, *ways: str) -> tuple[str, ...]:
    lines = [way.line for name in ways if (way := nccl.way(name)) is not None and way.line]
    said = [] if nccl.network is None else [f"Using network {nccl.network}"]
    return (*said, *lines)


def _why_sockets(case: Case, why: WhySockets | None) -> dict[str, Any]:
    """Cause, fix and confidence."""
    own = _own_choice(case)
    if own is not None:
        fix = f"leave {' and '.join(_own_names(case))} to Broadgauge, or say `transport: tcp`"
        return {"cause": own, "fix": fix, "confidence": Confidence.CERTAIN}
    if why is None or not (why.lines or why.is_asked_for):
        cause = "NCCL found no adapter or plugin that it could use"
        return {"cause": cause, "fix": _WHAT_IS_MISSING, "confidence": Confidence.LIKELY}
    fix = f"{why.fix}; to measure TCP say `transport: tcp`"
    return {"cause": why.cause, "fix": fix, "confidence": why.confidence}


def _own_choice(case: Case) -> str | None:
    """What in the experiment decided it?"""
    own = _own_names(case)
    return f"the experiment sets {' and '.join(own)}" if own else None


def _own_names(case: Case) -> list[str]:
    names = ("NCCL_NET", "NCCL_NET_PLUGIN", "NCCL_IB_DISABLE", "NCCL_NET_GDR_LEVEL")
    return [name for name in names if name in case.environment]


def _pairs(number: int) -> str:
    return "1 pair of ranks" if number == 1 else f"{number} pairs of ranks"


def _name(case: Case) -> str:
    assert case.link is not None
    return case.link.name


def _is_socket(network: str | None) -> bool:
    return network is not None and network.casefold() == "socket"
