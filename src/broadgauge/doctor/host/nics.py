"""Are the network interfaces what NCCL takes them for, and do they carry what they should?"""

from collections import defaultdict
from collections.abc import Iterator

from broadgauge.doctor.host.asking import (
    active_ports,
    can_use_rdma,
    few_names,
    gpus_here,
    socket_nics,
)
from broadgauge.messages.hardware import HardwareFacts, NicFacts
from broadgauge.specs.records.record import Confidence, Finding, Severity

FAST_MBPS = 25_000
"""From here one core can't take 1500-byte packets at line rate; slower links rarely care."""
STANDARD_MTU_BYTES = 1500
DROPS_RATIO = 1e-4
"""Of packets. Loss of 1 in 10,000 holds one TCP stream of 9000-byte packets and 0.1 ms round trip
at about 9 GB/s, of 1500 bytes at 1.5. Source: Mathis et al. 1997, rate = MSS / (RTT * sqrt(p))."""
_LEAST_PACKETS = 10_000
_TUNED_VENDORS = {"0x1d0f": "AWS ENA", "0x1ae0": "Google gVNIC"}
"""Source: NVIDIA/nccl, src/transport/net_socket.cc: more threads and sockets by themselves."""
_SOCKET_SETTINGS = ("NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD")
_CHANNEL_SETTINGS = ("NCCL_MIN_NCHANNELS", "NCCL_MIN_CTAS", "NCCL_TOPO_FILE")


def unknown_speed(facts: HardwareFacts) -> Iterator[Finding]:
    """Will NCCL take the NIC for 10 Gbit/s, whatever it carries?

    Source: NVIDIA/nccl, src/transport/net_socket.cc and src/graph/topo.cc: 10000 where `speed` is
    missing, 0 or less; a veth's driver says 10000 (Linux, drivers/net/veth.c).
    """
    if can_use_rdma(facts):
        return  # sockets only start the job
    taken = [nic for nic in socket_nics(facts) if _is_default_speed(nic)]
    names = [nic.name for nic in taken]
    variables = facts.effective_variables()
    if not taken or all(
        _is_set(variables, group) for group in (_SOCKET_SETTINGS, _CHANNEL_SETTINGS)
    ):
        return
    yield Finding(
        rule="host-nic-speed",
        severity=Severity.WARNING if gpus_here(facts) else Severity.INFO,
        symptom=f"NCCL will take {few_names(names)} for 10 Gbit/s, whatever it carries",
        evidence=tuple(_speed_evidence(nic) for nic in taken[:4]),
        cause=(
            "the driver does not tell the real speed; NCCL then plans one or two channels, each "
            "with one TCP connection, and one connection rarely carries more than 10 to 40 Gbit/s"
        ),
        fix=(
            "on a faster network NCCL_SOCKET_NTHREADS=4 and NCCL_NSOCKS_PERTHREAD=4 (their product "
            "may be 64) with NCCL_MIN_NCHANNELS=4, or the true `speed=` of the net in "
            "NCCL_TOPO_FILE; measure both, as threads cost cores"
        ),
        confidence=Confidence.LIKELY if facts.network_plugins else Confidence.CERTAIN,
    )


def _is_set(variables: dict[str, str], names: tuple[str, ...]) -> bool:
    return any(name in variables for name in names)


def _is_default_speed(nic: NicFacts) -> bool:
    if nic.vendor in _TUNED_VENDORS:
        return False
    return nic.kind == "veth" or nic.speed_mbps is None


def _speed_evidence(nic: NicFacts) -> str:
    told = "nothing, or -1" if nic.speed_mbps is None else str(nic.speed_mbps)
    return f"/sys/class/net/{nic.name}/speed: {told} ({nic.kind}, driver {nic.driver or 'unknown'})"


def _data_nics(facts: HardwareFacts) -> list[NicFacts]:
    """What RDMA over Ethernet or NCCL's sockets would use; IPoIB has an MTU of its own."""
    of_ports = {name for hca, _ in active_ports(facts) for name in hca.interfaces}
    if can_use_rdma(facts):
        found = [nic for nic in facts.nics if nic.name in of_ports]
    else:
        found = list(socket_nics(facts))
    return [nic for nic in found if nic.kind != "ipoib" and nic.state != "down"]


def small_mtu(facts: HardwareFacts) -> Iterator[Finding]:
    """Does a fast NIC send packets of 1500 bytes?"""
    for nic in _data_nics(facts):
        mtu, speed = nic.mtu_bytes, nic.speed_mbps
        if mtu is None or speed is None or nic.kind == "veth":
            continue
        if speed < FAST_MBPS or mtu > STANDARD_MTU_BYTES:
            continue
        yield Finding(
            rule="host-nic-mtu",
            severity=Severity.WARNING,
            symptom=f"{nic.name} carries {speed / 1000:g} Gbit/s in packets of {mtu} bytes",
            evidence=(f"/sys/class/net/{nic.name}/mtu: {mtu}",),
            cause="jumbo frames are off: six times the packets, and RoCE's MTU is 1024 bytes",
            fix=(
                f"where every switch and peer takes it: `ip link set {nic.name} mtu 9000` "
                "(4200 is enough for RoCE's 4096); `ping -M do -s 8972 PEER` proves the path"
            ),
            confidence=Confidence.LIKELY,
        )


def differing_mtu(facts: HardwareFacts) -> Iterator[Finding]:
    """Do NICs of one speed send packets of several sizes?"""
    by_speed: defaultdict[int, dict[str, int]] = defaultdict(dict)
    for nic in _data_nics(facts):
        if nic.mtu_bytes is not None and nic.speed_mbps is not None:
            by_speed[nic.speed_mbps][nic.name] = nic.mtu_bytes
    for speed, mtus in by_speed.items():
        if len(set(mtus.values())) < 2:
            continue
        yield Finding(
            rule="host-nic-mtu-differs",
            severity=Severity.WARNING,
            symptom=f"NICs of {speed / 1000:g} Gbit/s have different MTUs",
            evidence=tuple(f"/sys/class/net/{name}/mtu: {mtu}" for name, mtu in mtus.items()),
            cause="a larger packet than the other end takes is dropped or cut up",
            fix="set one MTU on all of them, on their switches and on the other nodes",
            confidence=Confidence.POSSIBLE,
        )


def one_subnet(facts: HardwareFacts) -> Iterator[Finding]:
    """Are two NICs in one subnet, so that the kernel chooses between them?

    Source: NVIDIA/nccl issues 1580 and 1581.
    """
    homes: defaultdict[str, list[str]] = defaultdict(list)
    for nic in facts.nics:
        if nic.state != "down" and not nic.master:
            for subnet in dict.fromkeys(nic.subnets):
                homes[subnet].append(nic.name)
    for subnet, names in homes.items():
        if len(names) < 2:
            continue
        yield Finding(
            rule="host-nics-one-subnet",
            severity=Severity.WARNING,
            symptom=f"{few_names(names)} are in one subnet, {subnet}",
            evidence=(f"/proc/net/route: {subnet} on {', '.join(names)}",),
            cause=(
                "routes are equal: the kernel sends by one of them whatever NCCL_SOCKET_IFNAME "
                "says, and answers ARP for one NIC on the other"
            ),
            fix="a subnet for each NIC; else source routing (`ip rule from ADDRESS`), arp_ignore=1",
            confidence=Confidence.LIKELY,
        )


def drops(facts: HardwareFacts) -> Iterator[Finding]:
    """Have packets been dropped or damaged since the interface came up?"""
    for nic in facts.nics:
        packets = (nic.received_packets_count or 0) + (nic.sent_packets_count or 0)
        lost = {name: count for name, count in nic.counters.items() if count > 0}
        if packets < _LEAST_PACKETS or max(lost.values(), default=0) < packets * DROPS_RATIO:
            continue
        if nic.state == "down":
            continue
        yield Finding(
            rule="host-nic-drops",
            severity=Severity.WARNING,
            symptom=f"{nic.name} has lost more than one packet in 10,000",
            evidence=tuple(
                f"/sys/class/net/{nic.name}/statistics/{name}: {count} of {packets} packets"
                for name, count in lost.items()
            ),
            cause="overflowing buffers, a bad cable (crc, carrier), or packets nobody here wants",
            fix=f"look whether it grows during a job: `ethtool -S {nic.name}`; rings, cable, PFC",
            confidence=Confidence.POSSIBLE,
        )


RULES = (unknown_speed, small_mtu, differing_mtu, one_subnet, drops)
