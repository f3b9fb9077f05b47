"""What do a launch's figures depend on besides the experiment?"""

import os
import platform
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from broadgauge.messages.waiting_limits import waiting_limit_s
from broadgauge.platforms.gpu_watch import gpu_handle, open_nvml, text_of
from broadgauge.platforms.machine import installed_version, memory_bytes, read_nics
from broadgauge.specs.records.record import Environment, GpuFacts

_GIT_LIMIT_S = waiting_limit_s(5.0)


def make_environment(
    platform_name: str,
    hello: Mapping[str, Any],
    *,
    gpus: tuple[str, ...],
    variables: dict[str, str],
    working_folder: Path,
) -> Environment:
    """Put together what rank 0 said of its software and what this machine is."""
    return Environment(
        broadgauge=installed_version("broadgauge") or "unknown",
        platform=platform_name,
        python=platform.python_version(),
        torch=_text_or_none(hello.get("torch")),
        nccl=_text_or_none(hello.get("nccl")),
        cuda=_text_or_none(hello.get("cuda")),
        driver=driver_version(),
        kernel=platform.release(),
        distribution=_distribution(),
        cpu=_cpu_model(),
        cores=len(os.sched_getaffinity(0)),
        memory_bytes=memory_bytes(),
        gpus=gpu_facts(gpus),
        nics=tuple(_nic_in_words(nic.name, nic.speed_gbps, nic.driver) for nic in read_nics()),
        git_commit=git_commit(working_folder),
        variables=variables,
    )


def git_commit(folder: Path) -> str | None:
    """Which commit is checked out there, `+` when files are changed? None: no checkout, no git."""
    commit = _git(folder, "rev-parse", "HEAD")
    if not commit:
        return None
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return f"{commit}+" if changes else commit


def driver_version() -> str | None:
    """Which NVIDIA driver is loaded? None: none."""
    nvml = open_nvml()
    return None if nvml is None else text_of(nvml.nvmlSystemGetDriverVersion())


def gpu_facts(gpus: tuple[str, ...]) -> tuple[GpuFacts, ...]:
    """What are the GPUs of the launch?"""
    nvml = open_nvml() if gpus else None
    if nvml is None:
        return ()
    handles = [handle for gpu in gpus if (handle := gpu_handle(nvml, gpu)) is not None]
    return tuple(
        GpuFacts(
            name=text_of(nvml.nvmlDeviceGetName(handle)),
            memory_bytes=int(nvml.nvmlDeviceGetMemoryInfo(handle).total),
        )
        for handle in handles
    )


def _git(folder: Path, *arguments: str) -> str | None:
    # No lock is taken and no hook or pager of the user's is run.
    command = ["git", "--no-optional-locks", "--no-pager", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_GIT_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@cache
def _distribution() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return None


@cache
def _cpu_model() -> str | None:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return None
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, None)


def _nic_in_words(name: str, speed_gbps: float | None, driver: str | None) -> str:
    speed = "speed unknown" if speed_gbps is None else f"{speed_gbps:g} Gbit/s"
    return f"{name} {speed}" if driver is None else f"{name} {speed} {driver}"


def _text_or_none(value: object) -> str | None:
    return None if value is None else str(value)
