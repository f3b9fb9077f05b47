"""What is this machine, as a tool elsewhere wants to know it before anything is started?

`facts` prints one object. Nothing is imported that takes long: torch is looked up, not loaded.
"""

import json
import os
import platform
import socket
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from broadgauge.agent.addresses import address_of, netmask_of
from broadgauge.agent.nvidia_smi import ask_nvidia_smi, cells_of
from broadgauge.agent.taken_cores import TakenCores, look, taken_since
from broadgauge.messages.codec import Decoder, encode

_NET = Path("/sys/class/net")


@dataclass(frozen=True, slots=True, kw_only=True)
class InterfaceFacts:
    """A network interface."""

    name: str
    address: str | None
    """IPv4's first; None: it has none."""
    netmask: str | None
    mtu_bytes: int
    speed_gbps: float | None
    """None: the device does not say."""
    driver: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    name: str
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """One machine."""

    machine_id: str
    """Equal for two names of one machine."""
    hostname: str
    python: str
    torch: str | None
    """None: not installed for this Python."""
    nccl: str | None
    kernel: str
    distribution: str | None
    cpu: str | None
    cores: int
    """As far as this user may use them."""
    memory_bytes: int
    gpus: tuple[GpuFacts, ...]
    driver: str | None
    interfaces: tuple[InterfaceFacts, ...]
    reached_at: str | None
    """Its own address on the way by which ssh came; None: not over ssh."""
    taken: TakenCores | None = None
    """What others had of its cores while it was asked; None: the kernel does not say."""


HOST_FACTS: Decoder[HostFacts] = Decoder(HostFacts)


def read_facts() -> HostFacts:
    """Of the machine that this runs on."""
    looked = look()
    gpus, driver = read_gpus()
    return HostFacts(
        machine_id=_machine_id(),
        hostname=socket.gethostname(),
        python=platform.python_version(),
        torch=version_here("torch"),
        nccl=version_here("nvidia-nccl-cu13") or version_here("nvidia-nccl-cu12"),
        kernel=platform.release(),
        distribution=_distribution(),
        cpu=_cpu_model(),
        cores=len(os.sched_getaffinity(0)),
        memory_bytes=os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        gpus=gpus,
        driver=driver,
        interfaces=read_interfaces(),
        reached_at=reached_at(os.environ.get("SSH_CONNECTION", "")),
        taken=taken_since(looked),
    )


def reached_at(ssh_connection: str) -> str | None:
    """Source: ssh(1), ENVIRONMENT: the client's address and port, the server's address and port."""
    words = ssh_connection.split()
    return words[2] if len(words) == 4 else None


def read_gpus() -> tuple[tuple[GpuFacts, ...], str | None]:
    """What nvidia-smi lists, and the driver's version; nothing where there is no such program."""
    said = ask_nvidia_smi(("name", "memory.total", "driver_version"))
    rows = [] if said is None else cells_of(said)
    told = [row for row in rows if len(row) == 3 and row[1].isdigit()]
    gpus = tuple(GpuFacts(name=row[0], memory_bytes=int(row[1]) * 2**20) for row in told)
    return gpus, told[0][2] if told else None


def read_interfaces() -> tuple[InterfaceFacts, ...]:
    """All but the loopback."""
    names = sorted(name for _, name in socket.if_nameindex() if name != "lo")
    return tuple(_read_interface(name) for name in names)


def _read_interface(name: str) -> InterfaceFacts:
    speed = _text(_NET / name / "speed")
    driver = _NET / name / "device" / "driver"
    return InterfaceFacts(
        name=name,
        address=address_of(name),
        netmask=netmask_of(name),
        mtu_bytes=int(_text(_NET / name / "mtu") or 1500),
        speed_gbps=int(speed) / 1000 if speed.isdigit() and int(speed) > 0 else None,
        driver=driver.resolve().name if driver.exists() else None,
    )


def _machine_id() -> str:
    """The kernel's life, and which of its networks: containers of one machine are several."""
    boot = _text(Path("/proc/sys/kernel/random/boot_id"))
    return f"{boot} {Path('/proc/self/ns/net').readlink()} {socket.gethostname()}"


def version_here(package: str) -> str | None:
    """Of what is installed for this Python; None: it is not."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _distribution() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return None


def _cpu_model() -> str | None:
    lines = _text(Path("/proc/cpuinfo")).splitlines()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, None)


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def main() -> int:
    """Print them."""
    sys.stdin.readline()
    sys.stdout.write(json.dumps(encode(read_facts())) + "\n")
    return 0
