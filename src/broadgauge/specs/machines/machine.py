"""What was found on this machine?"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineGpu:
    name: str
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineNic:
    name: str
    speed_gbps: float | None
    """None: the device does not say (virtual NICs often do not)."""
    mtu_bytes: int
    driver: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """What the plan and the first screen need to know of this machine."""

    hostname: str
    cores: tuple[int, ...]
    """Ids of the cores this process may use."""
    memory_bytes: int
    gpus: tuple[MachineGpu, ...]
    nics: tuple[MachineNic, ...]
    kernel: str
    python: str
    torch: str | None
    """None: not installed."""
    can_emulate: bool
    can_delay: bool
    """The kernel has netem."""
    refusal: str | None
    """Why nodes can't be emulated here, in words; None where they can."""
    fix: str | None
    """The exact command or change that would allow it."""
    has_nvlink: bool | None = None
    """Does active NVLink join any two of the GPUs? None: fewer than two, or nobody says."""
