"""Which RDMA adapters are those of a network's interfaces, so that NCCL takes no others?

All networks of a shape are attached to the same pods, which see every adapter. A macvlan in a pod
has no PCI device, and its adapter is the node's: only the adapter's table of GIDs, which has the
macvlan's address, joins the two.
Source: Linux, drivers/infiniband/core/roce_gid_mgmt.c; docs.nvidia.com/deeplearning/nccl,
NCCL_IB_HCA (`=`: these and no others; `mlx5_0:1`: a port).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from broadgauge.messages.hardware import HcaFacts, HcaPort

VARIABLE = "NCCL_IB_HCA"


class NoAdapterError(ValueError):
    """RDMA was asked for, and isn't there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NicAdapter:
    """A NIC's adapter."""

    interface: str
    name: str
    """As NCCL names a port: `mlx5_0:1`."""
    how: str
    """By what the two were joined, in words."""


def adapter_variables(
    interfaces: Sequence[str],
    hcas: Sequence[HcaFacts],
    variables: Mapping[str, str],
    address_of: Callable[[str], "str | None"],
) -> "tuple[dict[str, str], str]":
    """What NCCL is told, and why. What the user has set is kept. Raises NoAdapterError."""
    own = variables.get(VARIABLE)
    if own:
        return {}, f"{VARIABLE}={own}: set by the experiment, and kept"
    found = [find_adapter(name, hcas, address_of(name)) for name in interfaces]
    value = "=" + ",".join(each.name for each in found)
    how = "; ".join(f"{each.interface}: {each.how}" for each in found)
    return {VARIABLE: value}, f"{VARIABLE}={value}: {how}"


def find_adapter(interface: str, hcas: Sequence[HcaFacts], address: "str | None") -> NicAdapter:
    """By the surest sign. Raises NoAdapterError, with what is there."""
    for hca, port, how in _candidates(interface, hcas, address):
        if port.state == "ACTIVE":
            return NicAdapter(interface=interface, name=f"{hca.name}:{port.number}", how=how)
        state = port.state or "in an unknown state"
        raise NoAdapterError(
            f"RDMA was asked for on {interface}, whose adapter is {hca.name}:{port.number} "
            f"({how}), and that port is {state}, not ACTIVE"
        )
    names = ", ".join(hca.name for hca in hcas)
    seen = f"adapters here: {names}" if names else "no RDMA adapter is in this pod"
    has = "no IPv4 address" if address is None else address
    raise NoAdapterError(
        f"RDMA was asked for on {interface} ({has}), and none of its adapters can be told; {seen}"
    )


def _candidates(
    interface: str, hcas: Sequence[HcaFacts], address: "str | None"
) -> "Iterator[tuple[HcaFacts, HcaPort, str]]":
    rows = [
        (hca, port, row)
        for hca in hcas
        for port in hca.ports
        for row in port.gids or ()
        if address is not None and row.ipv4 == address
    ]
    rows.sort(key=lambda each: (interface not in each[0].interfaces, each[1].state != "ACTIVE"))
    for hca, port, _ in rows:
        yield hca, port, f"{hca.name}'s GIDs have {address}"
    for hca in hcas:
        if interface in hca.interfaces:
            ports = sorted(hca.ports, key=lambda port: _is_less_sure(port, interface))
            for port in ports:
                yield hca, port, f"it is {hca.name}'s own interface"


def _is_less_sure(port: HcaPort, interface: str) -> "tuple[bool, bool]":
    names = {row.interface for row in port.gids or ()}
    return interface not in names, port.state != "ACTIVE"
