"""What is this machine? Read from /sys, /proc and NVML, without torch, in a blink."""

import os
import platform
import socket
from functools import cache
from importlib import metadata
from pathlib import Path

from broadgauge.agent.cores import cores_by_neighbourhood
from broadgauge.agent.emulated.ability import Ability, probe_ability
from broadgauge.platforms.gpu_watch import gpu_handle, open_nvml, text_of
from broadgauge.platforms.nvlink import are_joined
from broadgauge.specs.machines.machine import MachineFacts, MachineGpu, MachineNic

_OTHERS_ENDS = (
    "lo",
    "veth",
    "docker",
    "br-",
    "virbr",
    "cni",
    "flannel",
    "cali",
    "podman",
    "ifb",
    "dummy",
)
"""NICs of containers and virtual switches: they come and go, and no cluster link ends there."""


def read_machine() -> MachineFacts:
    """What can be measured on here?"""
    granted = ability()
    return MachineFacts(
        hostname=socket.gethostname(),
        cores=cores_by_neighbourhood(),
        memory_bytes=memory_bytes(),
        gpus=read_gpus(),
        nics=read_nics(),
        kernel=platform.release(),
        python=platform.python_version(),
        torch=installed_version("torch"),
        can_emulate=granted.is_possible,
        can_delay=granted.has_netem,
        refusal=granted.reason,
        fix=granted.fix,
        has_nvlink=read_nvlink(),
    )


@cache
def ability() -> Ability:
    """What does the kernel grant this user? Tried once in a process's life: it takes 0.5 s."""
    return probe_ability()


def memory_bytes() -> int:
    """How much memory is there, and how much of it does the control group allow?"""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = _read("/sys/fs/cgroup/memory.max")
    return min(total, int(limit)) if limit.isdigit() else total


def cpu_quota_cores() -> float | None:
    """How many cores' time does the control group allow? None: as much as there is.

    Source: cpu.max of cgroup v2, `<quota> <period>` in microseconds.
    """
    quota, _, period = _read("/sys/fs/cgroup/cpu.max").partition(" ")
    if not quota.isdigit() or not period.isdigit():
        return None
    return int(quota) / int(period)


def read_gpus() -> tuple[MachineGpu, ...]:
    """Which GPUs does NVML show? Of those CUDA_VISIBLE_DEVICES names, where it is set."""
    nvml = open_nvml()
    if nvml is None:
        return ()
    found = []
    for name in visible_gpus(nvml.nvmlDeviceGetCount()):
        handle = gpu_handle(nvml, name)
        if handle is None:
            continue
        memory = nvml.nvmlDeviceGetMemoryInfo(handle)
        model = text_of(nvml.nvmlDeviceGetName(handle))
        found.append(MachineGpu(name=model, memory_bytes=int(memory.total)))
    return tuple(found)


def read_nvlink() -> bool | None:
    """Does NVLink join any two of the visible GPUs? None: NVML does not say."""
    nvml = open_nvml()
    if nvml is None:
        return None
    handles = [gpu_handle(nvml, name) for name in visible_gpus(nvml.nvmlDeviceGetCount())]
    return are_joined(nvml, [handle for handle in handles if handle is not None])


def visible_gpus(count: int) -> tuple[str, ...]:
    """Which GPUs may be used, as CUDA_VISIBLE_DEVICES would name them?"""
    wanted = os.environ.get("CUDA_VISIBLE_DEVICES")
    if wanted is None:
        return tuple(str(index) for index in range(count))
    names = []
    for name in (part.strip() for part in wanted.split(",")):
        # CUDA ignores what comes after the first that it does not know.
        if not name or (name.lstrip("-").isdigit() and not 0 <= int(name) < count):
            break
        names.append(name)
    return tuple(names)


def read_nics() -> tuple[MachineNic, ...]:
    """Which NICs has this machine, those of containers left out?"""
    folders = sorted(Path("/sys/class/net").iterdir())
    return tuple(
        _read_nic(folder)
        for folder in folders
        if not folder.name.startswith(_OTHERS_ENDS) and (folder / "mtu").exists()
    )


def _read_nic(folder: Path) -> MachineNic:
    speed = _read(folder / "speed")
    driver = folder / "device" / "driver"
    return MachineNic(
        name=folder.name,
        speed_gbps=int(speed) / 1000 if speed.isdigit() and int(speed) > 0 else None,
        mtu_bytes=int(_read(folder / "mtu") or 1500),
        driver=driver.resolve().name if driver.exists() else None,
    )


def installed_version(package: str) -> str | None:
    """Which version is installed? None: none. The package is not imported."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _read(path: str | Path) -> str:
    """A small file's text; empty where it can't be read."""
    try:
        return Path(path).read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""
