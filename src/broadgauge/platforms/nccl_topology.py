"""Which topology file tells NCCL a NIC's speed, and leaves the rest to its own detection?

NCCL reads the file first, fills in what it finds on the machine, and sets an attribute only where
the file does not. It finds the NIC by `name`, the processor by `numaid`, and drops what it does
not find. Source: NVIDIA/nccl v2.28.9, src/graph/topo.cc (ncclTopoGetSystem, ncclTopoPopulateNics,
xmlInitAttrInt; `speed` in Mb/s) and src/graph/xml.cc (ncclTopoFillNet, ncclTopoGetXmlFromCpu).
"""

import platform
from collections.abc import Sequence
from pathlib import Path

_ARCHITECTURES = {"x86_64": "x86_64", "aarch64": "arm64", "ppc64le": "ppc64"}


def topology_xml(interfaces: Sequence[str], seen_gbps: float, numa_node: int) -> str:
    """The file's text. `seen_gbps` is each NIC's, `numa_node` that of the node's first GPU;
    −1: the machine names none."""
    attributes = " ".join(f'{name}="{value}"' for name, value in _processor(numa_node).items())
    speed_mbps = max(1, round(seen_gbps * 1000))
    nets = [f'      <net name="{name}" speed="{speed_mbps}"/>\n' for name in interfaces]
    return (
        '<system version="1">\n'
        f"  <cpu {attributes}>\n"
        "    <nic>\n" + "".join(nets) + "    </nic>\n"
        "  </cpu>\n"
        "</system>\n"
    )


def numa_node_of(pci_bus_id: str) -> int:
    """Which NUMA node is this PCI device on? −1: the machine does not say."""
    *_, domain, bus, device = pci_bus_id.lower().split(":")
    name = f"{domain[-4:]}:{bus}:{device}"
    try:
        return int(Path(f"/sys/bus/pci/devices/{name}/numa_node").read_text())
    except (OSError, ValueError):
        return -1


def _processor(numa_node: int) -> dict[str, str]:
    """What NCCL itself would write of the processor, complete: a rank whose GPU is elsewhere
    does not fill it in, and NCCL refuses a processor without its kind."""
    machine = platform.machine()
    attributes = {"numaid": str(numa_node), "arch": _ARCHITECTURES.get(machine, machine)}
    if machine == "x86_64":
        described = _cpuinfo()
        attributes["vendor"] = described.get("vendor_id", "GenuineIntel")
        attributes["familyid"] = described.get("cpu family", "6")
        attributes["modelid"] = described.get("model", "0")
    return attributes


def _cpuinfo() -> dict[str, str]:
    """The first processor's lines of /proc/cpuinfo."""
    try:
        first, _, _ = Path("/proc/cpuinfo").read_text().partition("\n\n")
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}
