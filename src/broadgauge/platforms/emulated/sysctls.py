"""Which settings of TCP and IPv6 does a node's network namespace get?"""

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
}

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
    """How many segments has TCP in the current network namespace sent again?

    Source: RetransSegs of /proc/net/snmp (RFC 4022, tcpRetransSegs), which follows its reader.
    """
    lines = Path("/proc/net/snmp").read_text().splitlines()
    names, values = (line.split() for line in lines if line.startswith("Tcp:"))
    return int(values[names.index("RetransSegs")])
