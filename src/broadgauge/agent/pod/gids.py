"""Which row of its adapters' tables of GIDs does NCCL take, and which should it?

Source: NVIDIA/nccl (2.21 and newer), src/transport/net_ib.cc, ncclIbGetGidIndex and
ncclUpdateGidIndex.
"""

import ipaddress
from collections.abc import Iterator, Mapping, Sequence

from broadgauge.agent.pod.adapters import NicAdapter
from broadgauge.messages.hardware import HcaPort

INDEX = "NCCL_IB_GID_INDEX"
RANGE = "NCCL_IB_ADDR_RANGE"
CHOSEN_BY = (INDEX, RANGE, "NCCL_IB_ADDR_FAMILY", "NCCL_IB_ROCE_VERSION_NUM")
"""By which a user says which row it is to be."""
_ROCE_V2 = "RoCE v2"
_FIRST_THAT_CHOOSES = (2, 21)
"""Source: NCCL release notes 2.21.5: the GID index is chosen automatically."""


def common_index(adapters: Sequence[NicAdapter]) -> int | None:
    """Of all RoCE adapters; None: they differ, or one has none. NCCL takes one index for all."""
    found = {None if one.gid is None else one.gid.index for one in adapters if one.is_roce}
    return found.pop() if len(found) == 1 else None


def index_that_nccl_takes(port: HcaPort, address_range: str | None = None) -> int:
    """Which GID does NCCL 2.21 or newer take of a RoCE port, no index being set?

    The first of all; from there on each of IPv4 where the one so far is not, then each of RoCE v2
    where the one so far is not. `address_range`: NCCL_IB_ADDR_RANGE, `10.0.0.0/16`.
    """
    rows = {row.index: row for row in port.gids or ()}
    within = None if address_range is None else ipaddress.IPv4Network(address_range)
    taken = 0
    for index in sorted(rows):
        row, so_far = rows[index], rows.get(taken)
        if index == 0 or row.ipv4 is None:
            continue
        if within is not None and ipaddress.IPv4Address(row.ipv4) not in within:
            continue
        is_first = so_far is None or so_far.ipv4 is None
        if is_first or (row.kind == _ROCE_V2 and rows[taken].kind != _ROCE_V2):
            taken = index
    return taken


def does_nccl_find_them(adapters: Sequence[NicAdapter], address_range: str | None = None) -> bool:
    """Does it take the right GID of each RoCE port, no index being set?"""
    return all(
        one.gid is not None and index_that_nccl_takes(one.port, address_range) == one.gid.index
        for one in adapters
        if one.is_roce
    )


def tightest_range(adapters: Sequence[NicAdapter]) -> str | None:
    """The smallest subnet that holds the address of each one's GID; None: one has no GID."""
    own = [None if one.gid is None else one.gid.ipv4 for one in adapters if one.is_roce]
    if not own or None in own:
        return None
    numbers = [int(ipaddress.IPv4Address(address)) for address in own if address is not None]
    length = 32
    while len({number >> (32 - length) for number in numbers}) > 1:
        length -= 1
    return str(ipaddress.IPv4Network((numbers[0], length), strict=False))


def gid_problems(
    adapters: Sequence[NicAdapter], nccl_version: str | None, given: Mapping[str, str]
) -> Iterator[str]:
    """Has each RoCE port one, and does NCCL find it where no index fits all? None of them where the
    user says which row it is to be."""
    if any(name in given for name in CHOSEN_BY):
        return
    roce = [adapter for adapter in adapters if adapter.is_roce]
    yield from (no_gid(adapter) for adapter in roce if adapter.gid is None)
    own_range = tightest_range(roce)
    if own_range is None or common_index(roce) is not None:
        return
    if nccl_version is not None and _is_before(nccl_version, _FIRST_THAT_CHOOSES):
        yield (
            f"the adapters' GIDs have several indices, and NCCL {nccl_version} takes one for all: "
            "NCCL 2.21 or newer chooses for each"
        )
    elif not does_nccl_find_them(roce) and not does_nccl_find_them(roce, own_range):
        yield (
            "the adapters' GIDs have several indices, and NCCL would take other pods' GIDs of the "
            "same subnet: give pods one NIC each, or virtual functions with tables of their own"
        )


def lacks_gid(adapter: NicAdapter, given: Mapping[str, str]) -> bool:
    """Has this port none, and does the user not say which row it is to be?"""
    return adapter.is_roce and adapter.gid is None and not any(name in given for name in CHOSEN_BY)


def no_gid(adapter: NicAdapter) -> str:
    """What is wrong with a port that lacks one."""
    own = ", ".join(adapter.found_nic.ipv4)
    of_nic = f"the NIC's address ({own})" if own else "an IPv4 address"
    if adapter.port.gids is None:
        table = "its table of GIDs can't be read"
    else:
        rows = ", ".join(
            f"{row.index} {row.kind or 'of another namespace'} {row.ipv4 or 'IPv6'}"
            for row in adapter.port.gids[:8]
        )
        table = f"its table has {rows or 'no GID'}"
    by_ipv6 = (
        " (RoCE by IPv6 alone: NCCL_IB_ADDR_FAMILY=AF_INET6, or NCCL_IB_GID_INDEX, in the "
        "experiment's `environment`)"
    )
    has_ipv6 = any(row.kind == _ROCE_V2 and row.ipv4 is None for row in adapter.port.gids or ())
    return (
        f"{adapter.name} has no GID of RoCE v2 with {of_nic}: {table}. The address must be on the "
        f"interface before the pod starts to train{by_ipv6 if has_ipv6 and not own else ''}"
    )


def _is_before(version: str, first: tuple[int, int]) -> bool:
    return tuple(map(int, version.split(".")[:2])) < first
