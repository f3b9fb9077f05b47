"""Which NVIDIA GPUs are on the bus, and can a NIC read their memory?

Without NVML: /proc/driver/nvidia, which the driver writes, and the PCI bus.
Source: NVIDIA driver README, "The /proc Filesystem Interface"; NVIDIA GPU Operator documentation,
"GPUDirect RDMA": DMA-BUF needs the open kernel modules and Linux 5.12, nvidia-peermem neither.
"""

import re

from broadgauge.agent.hardware.pci import read_device
from broadgauge.agent.hardware.tree import Tree, to_number
from broadgauge.messages.hardware import GpuDevice, GpuDriver, HardwareFacts

_DEVICES = "/sys/bus/pci/devices"
_PROC = "/proc/driver/nvidia"
_NVIDIA = "0x10de"
_CLASSES = ("0x0300", "0x0302")
"""VGA compatible controller, 3D controller. Source: PCI Code and ID Assignment, class 03h."""
_VERSION = re.compile(r"\b(\d{3}\.\d{2,3}(?:\.\d{1,3})?)\b")
_KERNEL = re.compile(r"(\d{1,4})\.(\d{1,4})")
_PEER_MODULES = ("nvidia_peermem", "nv_peer_mem")
_FABRIC_MANAGER = ("/run/nvidia-fabricmanager", "/var/run/nvidia-fabricmanager")


def read_gpus(tree: Tree) -> tuple[GpuDevice, ...]:
    """By PCI address."""
    found: list[GpuDevice] = []
    for address in tree.names(_DEVICES):
        if tree.text(_DEVICES, address, "vendor") != _NVIDIA:
            continue
        if not (tree.text(_DEVICES, address, "class") or "").startswith(_CLASSES):
            continue
        pci = read_device(tree, tree.real(_DEVICES, address))
        if pci is None:
            continue
        told = _information(tree, address)
        minor = to_number(told.get("Device Minor"))
        found.append(
            GpuDevice(
                pci=pci,
                model=told.get("Model"),
                minor=minor,
                is_usable=None if minor is None else tree.exists(f"/dev/nvidia{minor}"),
            )
        )
    return tuple(found)


def _information(tree: Tree, address: str) -> dict[str, str]:
    """`Model: \t NVIDIA H200` and other such lines."""
    lines = tree.lines(_PROC, "gpus", address, "information")
    pairs = (line.partition(":") for line in lines)
    return {name.strip(): value.strip() for name, _, value in pairs if value.strip()}


def read_gpu_driver(tree: Tree) -> GpuDriver | None:
    """None: neither the module nor what it writes is here."""
    text = tree.text(_PROC, "version")
    own = tree.text("/sys/module/nvidia/version")
    if text is None and own is None:
        return None
    match = _VERSION.search(text or "")
    loaded = [name for name in _PEER_MODULES if tree.exists("/sys/module", name)]
    return GpuDriver(
        version=own or (None if match is None else match[1]),
        is_open=None if text is None else "Open Kernel Module" in text,
        peer_memory=loaded[0] if loaded else None,
        memory_peers=tuple(tree.names("/sys/kernel/mm/memory_peers")),
        has_gdrcopy=tree.exists("/sys/module/gdrdrv") or tree.exists("/dev/gdrdrv"),
        has_fabric_manager=True if any(map(tree.exists, _FABRIC_MANAGER)) else None,
    )


def kernel_version(facts: HardwareFacts) -> tuple[int, int] | None:
    """`5.14.0-427.el9` → (5, 14)."""
    match = _KERNEL.match(facts.machine.kernel or "")
    return None if match is None else (int(match[1]), int(match[2]))


def can_dma_buf(facts: HardwareFacts) -> bool | None:
    """Could NICs read the GPUs' memory by DMA-BUF? None: it is not known.

    Source: NVIDIA GPU Operator documentation, "GPUDirect RDMA and GPUDirect Storage": open kernel
    modules and Linux 5.12.
    """
    kernel = kernel_version(facts)
    if facts.gpu_driver is None or facts.gpu_driver.is_open is False:
        return False
    if kernel is not None and kernel < (5, 12):
        return False
    return None if kernel is None or facts.gpu_driver.is_open is None else True
