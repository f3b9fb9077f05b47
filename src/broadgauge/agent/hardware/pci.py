"""Where on the PCI bus is a device, how is its link trained, and how far are two devices apart?

Source: Linux, Documentation/ABI/testing/sysfs-bus-pci; the names of distances as the legend of
`nvidia-smi topo -m` has them, and NCCL's src/graph/paths.cc (ncclTopoSetPaths).
"""

import re
from pathlib import Path

from broadgauge.agent.hardware.tree import Tree, to_number
from broadgauge.messages.hardware import PciDevice

_ROOT_BUS = re.compile(r"pci[0-9a-fA-F]{4,}:[0-9a-fA-F]{2}")
_ADDRESS = re.compile(r"[0-9a-fA-F]{4,}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F]")
_SPEED = re.compile(r"(\d{1,3})(?:\.(\d))? GT/s")
_NO_WIDTH = (0, 255)
"""Source: Linux, drivers/pci/pci-sysfs.c: what is written where the link is unknown."""
_DEVICES = "/sys/bus/pci/devices"

_EXTENDED = 0x100
_ACS_CAPABILITY = 0x000D
_ACS_CONTROL = 6
_ACS_REDIRECTS = 0x04 | 0x08
"""P2P Request Redirect and P2P Completion Redirect. Source: PCI Express Base Specification, 7.7.11
(ACS Extended Capability); Linux, include/uapi/linux/pci_regs.h, PCI_ACS_RR and PCI_ACS_CR."""
_LENGTH_TO_ACS = 4096
DISTANCES = ("PIX", "PXB", "PHB", "NODE", "SYS", "unknown")
"""Nearest first."""


def read_device(tree: Tree, folder: Path | None) -> PciDevice | None:
    """Of a folder of sysfs with links followed, or one below it; None: on no PCI bus."""
    path = () if folder is None else pci_path(folder)
    if not path or not _ADDRESS.fullmatch(path[-1]):
        return None
    address = path[-1]

    def text(name: str) -> str | None:
        return tree.text(_DEVICES, address, name)

    node = to_number(text("numa_node"))
    return PciDevice(
        address=address,
        path=path,
        vendor=text("vendor") or None,
        device=text("device") or None,
        numa_node=None if node is None or node < 0 else node,
        link_mt_per_s=_speed(text("current_link_speed")),
        max_link_mt_per_s=_speed(text("max_link_speed")),
        link_width=_width(text("current_link_width")),
        max_link_width=_width(text("max_link_width")),
        iommu_type=text("iommu_group/type") or None,
    )


def pci_path(folder: Path) -> tuple[str, ...]:
    """`…/pci0000:3a/0000:3a:00.0/0000:3b:00.0/net/ib0` → the three in front; empty: no PCI."""
    parts = folder.parts
    start = next((at for at, part in enumerate(parts) if _ROOT_BUS.fullmatch(part)), None)
    if start is None:
        return ()
    below = list(parts[start + 1 :])
    length = next((at for at, part in enumerate(below) if not _ADDRESS.fullmatch(part)), len(below))
    return (parts[start], *below[:length])


def distance(one: PciDevice, other: PciDevice, numa_nodes: int | None) -> str:
    """`PIX`, `PXB`, `PHB`, `NODE`, `SYS` or `unknown`.

    One switch is a port upwards and one downwards for each device: two that part below the same
    port upwards, one or two steps above themselves, have one switch between them.
    """
    shared = len(shared_path(one, other))
    if shared == 0:
        return _across_host_bridges(one, other, numa_nodes)
    if shared == 1:
        return "PHB"
    return "PIX" if max(len(one.path), len(other.path)) - shared <= 2 else "PXB"


def _across_host_bridges(one: PciDevice, other: PciDevice, numa_nodes: int | None) -> str:
    if one.numa_node is None or other.numa_node is None:
        return "NODE" if numa_nodes == 1 and one.path and other.path else "unknown"
    return "NODE" if one.numa_node == other.numa_node else "SYS"


def shared_path(one: PciDevice, other: PciDevice) -> tuple[str, ...]:
    """What both pass on their way up, from the root bus down."""
    length = 0
    for first, second in zip(one.path, other.path, strict=False):
        if first != second:
            break
        length += 1
    return one.path[:length]


def redirecting_bridges(tree: Tree, one: PciDevice, other: PciDevice) -> tuple[str, ...] | None:
    """Bridges between two devices where ACS sends peer-to-peer traffic up to the CPU.

    None: one of them could not be read. Without root sysfs gives 64 bytes of a device's
    configuration, and ACS stands behind 256.
    """
    shared = len(shared_path(one, other))
    if shared <= 1:
        return ()  # it passes the CPU anyway
    bridges = [*one.path[shared:-1], *other.path[shared:-1]]
    states = {bridge: redirects(tree, bridge) for bridge in bridges}
    if None in states.values():
        return None
    return tuple(sorted(bridge for bridge, is_on in states.items() if is_on))


def redirects(tree: Tree, address: str) -> bool | None:
    """Does this bridge's ACS redirect requests or completions? None: not readable."""
    data = tree.data(_DEVICES, address, "config", most_bytes=_LENGTH_TO_ACS)
    if data is None or len(data) <= _EXTENDED + 4:
        return None
    at, seen = _EXTENDED, set[int]()
    while _EXTENDED <= at <= len(data) - 8 and at not in seen:
        seen.add(at)
        header = int.from_bytes(data[at : at + 4], "little")
        if header & 0xFFFF == _ACS_CAPABILITY:
            control = int.from_bytes(data[at + _ACS_CONTROL : at + 8], "little")
            return bool(control & _ACS_REDIRECTS)
        at = header >> 20
    return False


def _speed(text: str | None) -> int | None:
    """`16.0 GT/s PCIe` → 16000; None: `Unknown`."""
    match = None if text is None else _SPEED.match(text)
    return None if match is None else int(match[1]) * 1000 + int(match[2] or 0) * 100


def _width(text: str | None) -> int | None:
    width = to_number(text)
    return None if width is None or width in _NO_WIDTH or width < 0 else width
