"""Can NICs read and write the GPUs' memory, and by a short way?"""

from collections.abc import Iterator

from broadgauge.agent.hardware.gpus import can_dma_buf
from broadgauge.doctor.host.asking import active_ports, few_names, gpus_here, nearest
from broadgauge.messages.hardware import GpuDevice, HardwareFacts
from broadgauge.specs.records.record import Confidence, Finding, Severity


def _has_both(facts: HardwareFacts) -> bool:
    return bool(gpus_here(facts)) and any(True for _ in active_ports(facts))


def no_gpudirect(facts: HardwareFacts) -> Iterator[Finding]:
    """Is neither nvidia-peermem nor DMA-BUF there?"""
    driver = facts.gpu_driver
    if not _has_both(facts) or driver is None or driver.peer_memory or driver.memory_peers:
        return
    possible = can_dma_buf(facts)
    if possible:
        return
    kind = {True: "open", False: "proprietary", None: "of unknown kind"}[driver.is_open]
    yield Finding(
        rule="host-no-gpudirect",
        severity=Severity.INFO if possible is None else Severity.WARNING,
        symptom=(
            "GPUDirect RDMA may be off: nvidia-peermem is not loaded, DMA-BUF is unknown"
            if possible is None
            else "GPUDirect RDMA is off: NICs can't read the GPUs' memory"
        ),
        evidence=(
            "/sys/module/nvidia_peermem: not there",
            f"/proc/driver/nvidia/version: kernel modules {kind}, {driver.version or 'unknown'}",
            f"/proc/sys/kernel/osrelease: {facts.machine.kernel or 'unknown'}",
        ),
        cause="every byte is copied through the host's memory: a fraction of the NICs' rate",
        fix=(
            "`modprobe nvidia-peermem` on the node (GPU Operator: driver.rdma.enabled=true), or "
            "the open kernel modules on Linux 5.12 or newer, for DMA-BUF"
        ),
        confidence=Confidence.LIKELY,
    )


def unseen_peermem(facts: HardwareFacts) -> Iterator[Finding]:
    """Does this NCCL look for nvidia-peermem where it is?

    Source: NVIDIA/nccl, src/transport/net_ib.cc: /sys/module/nvidia_peermem from 2.23.4, before
    that only /sys/kernel/mm/memory_peers, which MLNX_OFED makes; issue 1537.
    """
    driver, version = facts.gpu_driver, facts.nccl_version
    if not _has_both(facts) or driver is None or version is None:
        return
    if driver.peer_memory is None or driver.memory_peers or can_dma_buf(facts):
        return
    if tuple(map(int, version.split("."))) >= (2, 23, 4):
        return
    yield Finding(
        rule="host-peermem-unseen",
        severity=Severity.WARNING,
        symptom=f"NCCL {version} does not see {driver.peer_memory}: GPUDirect RDMA will be off",
        evidence=(
            f"/sys/module/{driver.peer_memory}: loaded",
            "/sys/kernel/mm/memory_peers: not there",
        ),
        cause="up to 2.22.3 it looks only where MLNX_OFED's kernel modules register it",
        fix="NCCL 2.23.4 or newer, or MLNX_OFED",
        confidence=Confidence.CERTAIN,
    )


def far_adapters(facts: HardwareFacts) -> Iterator[Finding]:
    """Is a GPU's nearest adapter at the other socket, or behind the host bridge?"""
    far: dict[str, list[tuple[GpuDevice, str]]] = {}
    for gpu in gpus_here(facts):
        nearest_one = nearest(facts, gpu)
        if nearest_one is not None:
            far.setdefault(nearest_one.distance, []).append((gpu, nearest_one.device))
    for distance in ("SYS", "PHB", "NODE"):
        pairs = far.get(distance, [])
        if not pairs:
            continue
        names = [gpu.pci.address for gpu, _ in pairs]
        is_far = distance == "SYS"
        yield Finding(
            rule="host-gpu-nic-far" if is_far else "host-gpu-nic-behind-cpu",
            severity=Severity.WARNING if is_far else Severity.INFO,
            symptom=(
                f"the nearest RDMA adapter of {len(pairs)} GPU{'s' if len(pairs) > 1 else ''} is "
                + ("at another NUMA node (SYS)" if is_far else f"behind the CPU ({distance})")
            ),
            evidence=(
                f"GPUs {few_names(names)}",
                *(f"{gpu.pci.address} to {device}: {distance}" for gpu, device in pairs[:2]),
            ),
            cause=(
                "NCCL uses GPUDirect RDMA by default up to PXB only (PHB on some processors): "
                "bytes go through the host's memory"
            ),
            fix=(
                "an adapter below the GPU's own PCIe switch; in a VM or pod: pass both through "
                "together. NCCL_NET_GDR_LEVEL=" + ("SYS" if is_far else "PHB") + " is worth a try"
            ),
            confidence=Confidence.LIKELY,
        )


def access_control(facts: HardwareFacts) -> Iterator[Finding]:
    """Does PCIe's access control send peer-to-peer traffic up to the CPU?"""
    bridges: dict[str, None] = {}
    for gpu in gpus_here(facts):
        found = nearest(facts, gpu)
        bridges |= dict.fromkeys((found.acs_bridges or ()) if found is not None else ())
    if not bridges:
        return
    is_vm = facts.machine.hypervisor is not None
    yield Finding(
        rule="host-acs",
        severity=Severity.INFO if is_vm else Severity.WARNING,
        symptom="PCIe access control (ACS) is on between GPUs and RDMA adapters",
        evidence=tuple(
            f"/sys/bus/pci/devices/{bridge}/config: ACS redirects requests or completions"
            for bridge in list(bridges)[:4]
        ),
        cause="peer-to-peer traffic goes up to the CPU's root complex and back",
        fix=(
            "turn ACS off in the BIOS or by `setpci` on each bridge, unless VMs need it "
            "(NCCL's troubleshooting guide, PCI Access Control Services)"
        ),
        confidence=Confidence.CERTAIN,
    )


def translated_addresses(facts: HardwareFacts) -> Iterator[Finding]:
    """Does the IOMMU translate what GPUs and adapters say to each other?"""
    if not _has_both(facts) or facts.machine.hypervisor is not None:
        return
    devices = {gpu.pci.address: gpu.pci for gpu in gpus_here(facts)}
    devices |= {hca.pci.address: hca.pci for hca, _ in active_ports(facts) if hca.pci}
    translated = [
        f"/sys/bus/pci/devices/{address}/iommu_group/type: {pci.iommu_type}"
        for address, pci in devices.items()
        if pci.iommu_type is not None and pci.iommu_type.startswith("DMA")
    ]
    if not translated:
        return
    words = " ".join(facts.machine.iommu_words) or "nothing of it"
    yield Finding(
        rule="host-iommu",
        severity=Severity.WARNING,
        symptom="the IOMMU translates addresses of GPUs or RDMA adapters",
        evidence=(*translated[:2], f"/proc/cmdline: {words}"),
        cause="peer-to-peer traffic is slower, or goes through the CPU, or fails",
        fix="`iommu=pt` on the kernel's command line, or the IOMMU off in the BIOS",
        confidence=Confidence.POSSIBLE,
    )


RULES = (no_gpudirect, unseen_peermem, far_adapters, access_control, translated_addresses)
