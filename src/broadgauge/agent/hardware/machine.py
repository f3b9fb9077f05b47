"""What system does this process see: kernel, container, rights, IOMMU, TCP?"""

import re
import socket
from collections.abc import Mapping

from broadgauge.agent.hardware.limits import status
from broadgauge.agent.hardware.mounts import MOUNTS, read_mounts
from broadgauge.agent.hardware.tree import Tree, count_of_list, to_number
from broadgauge.messages.hardware import SystemFacts

_CAP_IPC_LOCK = 14
"""Source: Linux, include/uapi/linux/capability.h."""
_SECCOMP = {"0": "off", "1": "strict", "2": "filter"}
"""Source: proc_pid_status(5)."""
_IOMMU_WORD = re.compile(r"(?:intel_iommu|amd_iommu|iommu|iommu\.[a-z]+|pci)=\S{1,60}")
_RUNTIMES = (("kubepods", "kubernetes"), ("docker", "docker"), ("libpod", "podman"))
_SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_TCP = "/proc/sys/net/ipv4"


def read_machine(tree: Tree, environ: Mapping[str, str]) -> SystemFacts:
    """The system, as this process sees it."""
    told = status(tree)
    balancing = tree.number("/proc/sys/kernel/numa_balancing")
    return SystemFacts(
        hostname=socket.gethostname() if tree.is_live else tree.text("/proc/sys/kernel/hostname"),
        kernel=tree.text("/proc/sys/kernel/osrelease"),
        distribution=_distribution(tree),
        container=_container(tree, environ),
        user_id=to_number((told.get("Uid") or " ").split("\t")[0].strip()),
        seccomp=_SECCOMP.get(told.get("Seccomp", "")),
        can_lock_memory=_has_capability(told.get("CapEff"), _CAP_IPC_LOCK),
        hypervisor=_hypervisor(tree),
        numa_nodes=count_of_list(tree.text("/sys/devices/system/node/online")),
        has_numa_balancing=None if balancing is None else balancing > 0,
        has_iommu=_has_iommu(tree),
        iommu_words=tuple(_IOMMU_WORD.findall(tree.text("/proc/cmdline") or ""))[:8],
        tcp_congestion_control=tree.text(_TCP, "tcp_congestion_control") or None,
        tcp_rmem_max_bytes=_last_number(tree.text(_TCP, "tcp_rmem")),
        tcp_wmem_max_bytes=_last_number(tree.text(_TCP, "tcp_wmem")),
    )


def _distribution(tree: Tree) -> str | None:
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        for line in tree.lines(path):
            if line.startswith("PRETTY_NAME="):
                return line.partition("=")[2].strip().strip("\"'") or None
    return None


def _container(tree: Tree, environ: Mapping[str, str]) -> str | None:
    if environ.get("KUBERNETES_SERVICE_HOST") or tree.exists(_SERVICE_ACCOUNT):
        return "kubernetes"
    groups = tree.text("/proc/self/cgroup") or ""
    named = next((kind for word, kind in _RUNTIMES if word in groups), None)
    if named is not None:
        return named
    if tree.exists("/.dockerenv"):
        return "docker"
    if tree.exists("/run/.containerenv"):
        return "podman"
    return "container" if environ.get("container") or _has_layered_root(tree) else None


def _has_layered_root(tree: Tree) -> bool:
    roots = [mount for mount in read_mounts(tree.lines(MOUNTS)) if mount.place == "/"]
    return bool(roots) and roots[-1].kind == "overlay"


def _has_capability(mask: str | None, number: int) -> bool | None:
    try:
        return None if mask is None else bool(int(mask, 16) >> number & 1)
    except ValueError:
        return None


def _hypervisor(tree: Tree) -> str | None:
    """By the processor's flag, with the name of the machine's maker."""
    flags = next((ln for ln in tree.lines("/proc/cpuinfo") if ln.startswith("flags")), "")
    if "hypervisor" not in flags.split():
        return None
    return tree.text("/sys/class/dmi/id/sys_vendor") or "yes"


def _has_iommu(tree: Tree) -> bool | None:
    if tree.names("/sys/class/iommu") or tree.names("/sys/kernel/iommu_groups"):
        return True
    return False if tree.exists("/sys/kernel/iommu_groups") else None


def _last_number(text: str | None) -> int | None:
    """Of `4096 131072 6291456` the most."""
    return to_number(text.split()[-1]) if text and text.split() else None
