"""Can RDMA be used, and are all its ports as good as each other?"""

from collections.abc import Iterator

from broadgauge.doctor.host.asking import active_ports, few_names, gpus_here
from broadgauge.messages.hardware import HardwareFacts, HcaFacts, HcaPort
from broadgauge.specs.records.record import Confidence, Finding, Severity

_HCAS = "/sys/class/infiniband"


def _port_path(hca: HcaFacts, port: HcaPort) -> str:
    return f"{_HCAS}/{hca.name}/ports/{port.number}"


def _severity(facts: HardwareFacts) -> Severity:
    """What keeps RDMA away matters to jobs on GPUs."""
    return Severity.WARNING if gpus_here(facts) else Severity.INFO


def _shown(facts: HardwareFacts) -> tuple[str, ...]:
    return tuple(f"{_port_path(hca, port)}/state: ACTIVE" for hca, port in active_ports(facts))[:2]


def no_device_files(facts: HardwareFacts) -> Iterator[Finding]:
    """Are there adapters, and no way for a process to open them?"""
    seen = _shown(facts)
    refused = facts.rdma.refused_files
    if not seen or len(refused) < len(facts.rdma.device_files):
        return
    if refused:
        evidence = tuple(f"{path}: {why}" for path, why in list(refused.items())[:2])
        cause = "the device files are there, and this process may not open them"
    else:
        evidence = ("/dev/infiniband: no uverbs file",)
        cause = "the container was not given the adapters"
    yield Finding(
        rule="host-rdma-no-device",
        severity=_severity(facts),
        symptom="RDMA adapters are here and can't be opened: NCCL will use sockets",
        evidence=(*evidence, *seen),
        cause=cause,
        fix=(
            "Kubernetes: ask for the RDMA resource (`rdma/…`, `nvidia.com/…` or `openshift.io/…`); "
            "Docker: `--device=/dev/infiniband`; a host: the group or udev rule of /dev/infiniband"
        ),
        confidence=Confidence.CERTAIN,
    )


def no_verbs(facts: HardwareFacts) -> Iterator[Finding]:
    """Is the library missing that NCCL opens adapters with?"""
    if facts.libraries.get("libibverbs.so.1") is not None or not _shown(facts):
        return
    if "NCCL_IBVERBS_LIB" in facts.effective_variables():
        return
    yield Finding(
        rule="host-no-libibverbs",
        severity=_severity(facts),
        symptom="libibverbs.so.1 was not found: NCCL will use sockets",
        evidence=("not in LD_LIBRARY_PATH, nor in the system's library folders", *_shown(facts)),
        cause="the image lacks rdma-core",
        fix="install libibverbs1 and ibverbs-providers (Debian), libibverbs and rdma-core (RHEL)",
        confidence=Confidence.LIKELY,
    )


def ports_not_active(facts: HardwareFacts) -> Iterator[Finding]:
    """Is a port down whose likes are up, or up without a subnet manager?"""
    boards = {hca.board for hca, _ in active_ports(facts)}
    for hca in facts.hcas:
        for port in hca.ports:
            if port.state in (None, "ACTIVE"):
                continue
            is_waiting = port.physical_state == "LinkUp" and port.state in ("INIT", "ARMED")
            is_odd = is_waiting or (hca.board in boards and port.physical_state != "Disabled")
            yield Finding(
                rule="host-port-not-active",
                severity=_severity(facts) if is_odd else Severity.INFO,
                symptom=f"{hca.name}:{port.number} is {port.state}, not ACTIVE: NCCL leaves it out",
                evidence=(
                    f"{_port_path(hca, port)}/state: {port.state}",
                    f"{_port_path(hca, port)}/phys_state: {port.physical_state or 'unknown'}",
                ),
                cause=(
                    "the link is up and no subnet manager has configured it"
                    if is_waiting
                    else "no cable, a dead transceiver, a switch port that is off, or it is unused"
                ),
                fix=(
                    "start opensm or the switch's subnet manager; `sminfo` shows it"
                    if is_waiting
                    else "cable and switch port; or name the adapters that count in NCCL_IB_HCA"
                ),
                confidence=Confidence.LIKELY if is_waiting else Confidence.POSSIBLE,
            )


def slower_ports(facts: HardwareFacts) -> Iterator[Finding]:
    """Has a port come up at a lower rate than its likes?"""
    ports = [(hca, port) for hca, port in active_ports(facts) if port.rate_gbps is not None]
    for hca, port in ports:
        likes = [
            (other, theirs.rate_gbps or 0.0)
            for other, theirs in ports
            if other.board == hca.board and theirs.link_layer == port.link_layer
        ]
        best, rate = max(likes, key=lambda each: each[1])
        if hca.board is None or port.rate_gbps is None or port.rate_gbps >= rate:
            continue
        yield Finding(
            rule="host-port-rate",
            severity=Severity.WARNING,
            symptom=(
                f"{hca.name}:{port.number} runs at {port.rate_gbps:g} Gbit/s, "
                f"{best.name} of the same board at {rate:g}"
            ),
            evidence=(f"{_port_path(hca, port)}/rate: {port.rate_gbps:g} Gb/sec",),
            cause="a cable, transceiver or switch port that took a lower rate or fewer lanes",
            fix="`ibstatus`, `mlxlink -d DEVICE`: reseat or replace; every collective waits for it",
            confidence=Confidence.LIKELY,
        )


def mixed_layers(facts: HardwareFacts) -> Iterator[Finding]:
    """Are InfiniBand and RoCE ports both active, so that NCCL may take either?"""
    by_layer: dict[str, list[tuple[str, float]]] = {}
    for hca, port in active_ports(facts):
        if port.link_layer is not None:
            by_layer.setdefault(port.link_layer, []).append((hca.name, port.rate_gbps or 0.0))
    if len(by_layer) < 2 or "NCCL_IB_HCA" in facts.effective_variables():
        return
    best = {max(rate for _, rate in ports) for ports in by_layer.values()}
    shown = [
        f"{layer}: {few_names([name for name, _ in ports])}" for layer, ports in by_layer.items()
    ]
    yield Finding(
        rule="host-mixed-link-layers",
        severity=Severity.WARNING if len(best) == 1 and gpus_here(facts) else Severity.INFO,
        symptom="InfiniBand and Ethernet (RoCE) adapters are both active",
        evidence=tuple(f"{_HCAS}/*/ports/*/link_layer: {text}" for text in shown),
        cause="the two can't reach each other; NCCL takes all that are active and alike",
        fix=f"name those of the job's network: NCCL_IB_HCA={_names(by_layer)}",
        confidence=Confidence.POSSIBLE,
    )


def _names(by_layer: dict[str, list[tuple[str, float]]]) -> str:
    """Of the layer whose ports add up to more."""
    most = max(by_layer.values(), key=lambda ports: sum(rate for _, rate in ports))
    return "=" + ",".join(dict.fromkeys(name for name, _ in most))


def no_roce_gid(facts: HardwareFacts) -> Iterator[Finding]:
    """Does a RoCE port have an address that RoCE v2 can route?"""
    for hca, port in active_ports(facts):
        if port.link_layer != "Ethernet" or port.gids is None or hca.driver == "efa":
            continue
        if port.roce_v2_ipv4_index is not None:
            continue
        hidden = sum(gid.kind is None for gid in port.gids)
        yield Finding(
            rule="host-no-roce-v2-gid",
            severity=_severity(facts),
            symptom=f"{hca.name}:{port.number} has no GID of RoCE v2 with an IPv4 address",
            evidence=(
                f"{_port_path(hca, port)}/gids: {len(port.gids)} set, "
                f"{hidden} of another network namespace or of unknown type",
            ),
            cause=(
                "its interface has no IPv4 address here: it is in another network namespace, "
                "not configured, or uses IPv6"
            ),
            fix=(
                "give the pod the adapter's interface (SR-IOV, macvlan or hostNetwork) with an "
                "address; with IPv6 set NCCL_IB_ADDR_FAMILY=AF_INET6"
            ),
            confidence=Confidence.LIKELY,
        )


RULES = (no_device_files, no_verbs, ports_not_active, slower_ports, mixed_layers, no_roce_gid)
