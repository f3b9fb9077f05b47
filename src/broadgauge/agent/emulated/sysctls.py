"""Which settings of TCP and IPv6 does a node's network namespace get?"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

_ROOT = Path("/proc/sys/net")

NODE_SETTINGS = {
    # No duplicate-address detection, no router solicitations, no ::1 before 127.0.0.1.
    "ipv6/conf/all/disable_ipv6": "1",
    "ipv6/conf/default/disable_ipv6": "1",
    # 32 MiB: 10 ms at 25 Gbit/s, so that a window never bounds one stream. Default maxima of
    # 4 to 6 MiB are below 2 ms at 25 Gbit/s.
    "ipv4/tcp_rmem": "4096 131072 33554432",
    "ipv4/tcp_wmem": "4096 65536 33554432",
    # A connection must not start from what an earlier one saw before a reshape.
    "ipv4/tcp_no_metrics_save": "1",
    # After a time-out a connection would take a new hash, so that another core handles what it
    # sends from then on, beside what still waits at the first. Source: sk_rethink_txhash in
    # tcp_write_timeout; Linux 5.18 and later.
    "core/txrehash": "0",
}

_NEIGHBOUR_TRIES = "60"
"""A second each. The kernel's three are too few where an answer takes 2 x 10 s, the longest delay
of a network here, or where every other packet is lost."""

CLUSTER_SETTINGS = {
    "ipv6/conf/all/disable_ipv6": "1",
    "ipv6/conf/default/disable_ipv6": "1",
    # Where br_netfilter is loaded, bridged packets would go through connection tracking.
    "bridge/bridge-nf-call-iptables": "0",
    "bridge/bridge-nf-call-ip6tables": "0",
    "bridge/bridge-nf-call-arptables": "0",
}


def apply_settings(settings: dict[str, str]) -> tuple[str, ...]:
    """Write the settings of the current network namespace; says which the kernel refused.

    A setting this kernel does not have (no IPv6, no br_netfilter) is none to worry about.
    """
    warnings = []
    for name, value in settings.items():
        path = _ROOT / name
        if not path.exists():
            continue
        try:
            path.write_text(value)
        except OSError as error:
            warnings.append(f"net.{name.replace('/', '.')} stays as it is: {error.strerror}")
    return tuple(warnings)


def ask_neighbours_long(devices: Sequence[str]) -> tuple[str, ...]:
    """Have these devices of the current network namespace ask long for a neighbour's address."""
    return apply_settings(
        {
            f"ipv4/neigh/{device}/{kind}_solicit": _NEIGHBOUR_TRIES
            for device in devices
            for kind in ("mcast", "ucast")
        }
    )


def keep_packets_in_order(cores: Sequence[int]) -> tuple[str, ...]:
    """Let what NICs made from now on receive be handled by one of these cores, a flow by one alone.

    A veth leaves a packet to the core that sent it, and a shaped link is served by whichever core
    its timer or an acknowledgement runs on: packets of one flow overtake each other. TCP takes the
    late ones as lost, and for the life of the connection its window is too small for the line: a
    quarter of Gloo's connections had three quarters of their rate (docs/measurements.md). Says in
    words where the kernel can't. Source: Documentation/networking/scaling.rst, receive packet
    steering; `net.core.rps_default_mask` is in Linux 6.3 and later.
    """
    if len(cores) < 2:
        return ()
    path = _ROOT / "core/rps_default_mask"
    try:
        path.write_text(_cpu_mask(cores))
    except OSError as error:
        return (
            f"net.core.rps_default_mask can't be set ({error.strerror}): packets may overtake each "
            "other between cores, and TCP may take them as lost; hint: Linux 6.3 or later",
        )
    return ()


def _cpu_mask(cores: Sequence[int]) -> str:
    """The kernel's bit mask of cores: groups of 32 bits in hexadecimal, the highest first."""
    mask = sum(1 << core for core in set(cores))
    groups = [f"{mask >> 32 * group & 0xFFFFFFFF:08x}" for group in range(max(cores) // 32 + 1)]
    return ",".join(reversed(groups))


def choose_congestion_control() -> str:
    """Which congestion control do this namespace's sockets use? cubic, else reno, else what it is.

    cubic is what nearly every training cluster runs. A kernel whose default is another one may
    refuse it outside the first network namespace; reno is always allowed and, like cubic, fills a
    link until it drops. bbr paces by its own estimate: collectives that stop and go reached 93 %
    of 200 Mbit/s with it and 98 % with reno (docs/measurements.md).
    """
    path = _ROOT / "ipv4/tcp_congestion_control"
    for name in ("cubic", "reno"):
        with suppress(OSError):
            path.write_text(name)
            break
    return path.read_text().strip()


def tcp_retransmits() -> int:
    """How many segments has TCP in the current network namespace retransmitted?

    Source: RetransSegs of /proc/net/snmp (RFC 4022, tcpRetransSegs), which follows its reader.
    """
    lines = Path("/proc/net/snmp").read_text().splitlines()
    names, values = (line.split() for line in lines if line.startswith("Tcp:"))
    return int(values[names.index("RetransSegs")])
