"""What has crossed the ports of this machine's InfiniBand and RoCE adapters?

Source: Linux, Documentation/ABI/stable/sysfs-class-infiniband: `port_xmit_data` and
`port_rcv_data` count data octets divided by 4, in 64 bits; `port_xmit_discards` are packets that
the port discarded because it was down or congested. Data of all virtual lanes, headers included,
with RDMA or without.
"""

from pathlib import Path

from broadgauge.messages.counters import NicCounters
from broadgauge.messages.vocabulary import CounterKind

ADAPTERS = Path("/sys/class/infiniband")
BYTES_PER_COUNT = 4


def port_counters(adapters: Path = ADAPTERS) -> tuple[NicCounters, ...]:
    """Every port's totals by its name, `mlx5_0:1`; empty where there is no such adapter.

    A port whose counters can't be read, as those of some virtual functions, is left out.
    """
    try:
        ports = sorted(adapters.glob("*/ports/*"), key=_order)
    except OSError:
        return ()
    found = (_read_port(port) for port in ports)
    return tuple(counters for counters in found if counters is not None)


def _order(port: Path) -> tuple[str, int]:
    number = port.name
    return port.parents[1].name, int(number) if number.isdigit() else 0


def _read_port(port: Path) -> NicCounters | None:
    sent, received = (_count(port, f"port_{way}_data") for way in ("xmit", "rcv"))
    if sent is None or received is None:
        return None
    return NicCounters(
        name=f"{port.parents[1].name}:{port.name}",
        tx_bytes=sent * BYTES_PER_COUNT,
        rx_bytes=received * BYTES_PER_COUNT,
        drops_count=_count(port, "port_xmit_discards"),
        kind=CounterKind.HCA_PORT,
    )


def _count(port: Path, name: str) -> int | None:
    try:
        return int((port / "counters" / name).read_text())
    except (OSError, ValueError):
        return None
