"""What have the ports of RDMA adapters counted that they should not?

Source: Linux, Documentation/ABI/stable/sysfs-class-infiniband; NVIDIA, "InfiniBand Port Counters"
and "Understanding mlx5 Linux Counters", for their meanings.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from broadgauge.messages.hardware import HardwareFacts
from broadgauge.specs.records.record import Confidence, Finding, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """Counters of one cause."""

    rule: str
    names: tuple[str, ...]
    warn_from: int | None
    """Of one counter, since the driver was loaded: a few are what a boot or a replugged cable
    leaves; None: it never warns."""
    what: str
    cause: str
    fix: str


_GROUPS = (
    _Group(
        rule="host-port-bit-errors",
        names=("symbol_error", "port_rcv_errors", "local_link_integrity_errors"),
        warn_from=100,
        what="damaged data",
        cause="a bad cable or transceiver, dirt on the fibre",
        fix="clear the counters (`perfquery -R`), run a job, look again; `mlxlink --show_ber`",
    ),
    _Group(
        rule="host-port-link-flaps",
        names=("link_downed", "link_error_recovery"),
        warn_from=10,
        what="links that went down",
        cause="a flapping link; boots and driver restarts count, too",
        fix="`dmesg` says when; cable, transceiver, switch port",
    ),
    _Group(
        rule="host-port-retransmits",
        names=(
            *("out_of_sequence", "packet_seq_err", "local_ack_timeout_err"),
            *("implied_nak_seq_err", "roce_adp_retrans", "roce_adp_retrans_to"),
        ),
        warn_from=1000,
        what="packets that were lost or came out of order",
        cause="RoCE loses packets: no PFC or ECN on the path, or several paths (adaptive routing)",
        fix="look whether it grows in a job; PFC and DSCP on hosts and switches, NCCL_IB_TC",
    ),
    _Group(
        rule="host-port-discards",
        names=("port_xmit_discards", "out_of_buffer", "rnr_nak_retry_err", "rx_icrc_encapsulated"),
        warn_from=1000,
        what="packets that were discarded",
        cause="a port that was down or congested, or a receiver that was not ready",
        fix="look whether it grows in a job, and on which port",
    ),
    _Group(
        rule="host-port-congestion",
        names=("np_cnp_sent", "np_ecn_marked_roce_packets"),
        warn_from=None,
        what="marks of congestion",
        cause="switches mark packets (ECN) and congestion control slows senders: it works",
        fix="none by itself; many during one job: several flows share a link",
    ),
)


def port_errors(facts: HardwareFacts) -> Iterator[Finding]:
    """One finding a cause, of all ports."""
    for group in _GROUPS:
        counted = {
            f"/sys/class/infiniband/{hca.name}/ports/{port.number}: {name}": port.counters[name]
            for hca in facts.hcas
            for port in hca.ports
            for name in group.names
            if port.counters.get(name, 0) > 0
        }
        if not counted:
            continue
        most = sorted(counted.items(), key=lambda item: -item[1])
        is_bad = group.warn_from is not None and most[0][1] >= group.warn_from
        yield Finding(
            rule=group.rule,
            severity=Severity.WARNING if is_bad else Severity.INFO,
            symptom=f"RDMA ports have counted {group.what}",
            evidence=tuple(f"{place} {count}" for place, count in most[:4]),
            cause=group.cause,
            fix=group.fix,
            confidence=Confidence.POSSIBLE,
        )


RULES = (port_errors,)
