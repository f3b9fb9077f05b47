"""Which programs make emulated storages, in which versions, and where are they kept?

Each is a Go module of its own, so that neither decides of the other's libraries: rclone of 1.68.2
with a newer AWS library would send other checksums. As in scripts/control_plane, a folder of the
cache is named by version and by a hash of its recipe, and `bin` has links to those of now.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from scripts.control_plane.recipes import BUILD_FLAGS, GO_VERSION, short_hash

MODULES = Path(__file__).with_name("module")


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One build of Go, in the folder of `MODULES` that has its name."""

    name: str
    version: str
    package: str

    @property
    def module(self) -> Path:
        return MODULES / self.name

    def flags(self) -> list[str]:
        """`go build`'s."""
        return [*BUILD_FLAGS, "-ldflags=-s -w"]

    def folder_name(self) -> str:
        """`rclone-1.68.2-3f2a91c04b7d`."""
        texts = [path.read_text() for path in sorted(self.module.iterdir()) if path.is_file()]
        return f"{self.name}-{self.version}-{short_hash([*texts, repr(self), GO_VERSION])}"


PROGRAMS = (
    # What SkyPilot 0.14 mounts buckets with. Our main.go leaves out the 70 other backends.
    Program(name="rclone", version="1.68.2", package="."),
    Program(
        name="versitygw", version="1.8.0", package="github.com/versity/versitygw/cmd/versitygw"
    ),
)


def cache_folder() -> Path:
    """Beside the control plane's; agent/emulated/storage/tools.py looks there."""
    if named := os.environ.get("BROADGAUGE_CACHE"):
        return Path(named) / "storage-tools"
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "broadgauge/storage-tools"


def missing(cache: Path) -> list[Program]:
    """What is not built yet, or not what `bin` names."""
    return [
        each
        for each in PROGRAMS
        if (cache / "bin" / each.name).resolve() != (cache / each.folder_name() / each.name)
        or not (cache / each.folder_name() / each.name).is_file()
    ]
