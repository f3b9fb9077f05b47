"""How is a disk made slower? By the block cgroup of the processes that use it.

Which hierarchy has the controller differs between machines: `blkio` of cgroup v1, or `io` of v2.
Either limits bytes a second of one device, by its number. Rates are of whole disks: the kernel
refuses numbers of partitions in v1 and v2.
Source: Documentation/admin-guide/cgroup-v1/blkio-controller.rst and cgroup-v2.rst, "io.max".
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from broadgauge.agent.emulated.errors import EmulationError, building

HINT_THROTTLE = (
    "a disk is throttled by the block cgroup, which needs root (or a delegated `io` controller): "
    "run as root, or leave read_gbyte_per_s and write_gbyte_per_s out"
)
HINT_DISK = (
    "the scratch folder must be on a disk of its own number (ext4, xfs): TMPDIR=/folder moves it"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskRates:
    """Bytes a second; None: as fast as it is."""

    read: int | None
    write: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockGroups:
    """Where groups are made that limit block devices."""

    folder: Path
    is_v2: bool

    def make(self, name: str, device: str, rates: DiskRates) -> Path:
        """A group with these rates. Raises EmulationError."""
        group = self.folder / name
        with building(f"throttle the disk {device} by {group}", HINT_THROTTLE):
            if self.is_v2:
                (self.folder / "cgroup.subtree_control").write_text("+io")
            group.mkdir()
            for path, text in self._lines(device, rates):
                (group / path).write_text(text)
        return group

    def _lines(self, device: str, rates: DiskRates) -> list[tuple[str, str]]:
        given = {"r": rates.read, "w": rates.write}
        if self.is_v2:
            words = [f"{way}bps={rate}" for way, rate in given.items() if rate is not None]
            return [("io.max", f"{device} {' '.join(words)}")] if words else []
        names = {"r": "read", "w": "write"}
        return [
            (f"blkio.throttle.{names[way]}_bps_device", f"{device} {rate}")
            for way, rate in given.items()
            if rate is not None
        ]


def find_block_groups(mounts: Path = Path("/proc/self/mounts")) -> BlockGroups:
    """Which hierarchy of this machine limits block devices? Raises EmulationError."""
    for line in mounts.read_text().splitlines():
        _, folder, kind, options, *_ = line.split(" ")
        if kind == "cgroup" and "blkio" in options.split(","):
            return BlockGroups(folder=Path(folder), is_v2=False)
        if kind == "cgroup2":
            controllers = Path(folder) / "cgroup.controllers"
            if controllers.is_file() and "io" in controllers.read_text().split():
                return BlockGroups(folder=Path(folder), is_v2=True)
    raise EmulationError(
        "throttle a disk",
        "no cgroup hierarchy has blkio or io",
        error_number=None,
        hint=HINT_THROTTLE,
    )


def why_no_throttle() -> str | None:
    """Why can't this user throttle a disk here? None: nothing speaks against it."""
    try:
        groups = find_block_groups()
    except EmulationError as error:
        return error.detail
    return None if os.access(groups.folder, os.W_OK) else f"{groups.folder} is closed to this user"


def whole_disk_of(folder: Path, *, sysfs: Path = Path("/sys")) -> str:
    """`254:0`: the disk that this folder is on. Raises EmulationError where it is on none."""
    number = folder.stat().st_dev
    device = sysfs / f"dev/block/{os.major(number)}:{os.minor(number)}"
    if not device.exists():
        raise EmulationError(
            "throttle a disk", f"{folder} is on no disk", error_number=None, hint=HINT_DISK
        )
    real = device.resolve()
    disk = real.parent if (real / "partition").exists() else real
    return (disk / "dev").read_text().strip()


def join_group(group: Path) -> None:
    """This process and its children are limited from now on."""
    with building(f"enter the block cgroup {group}", HINT_THROTTLE):
        (group / "cgroup.procs").write_text("0")


def remove_group(group: Path) -> None:
    """Nobody may be in it any more; one that is gone is no error."""
    with suppress(OSError):
        group.rmdir()
