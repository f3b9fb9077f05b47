"""A real file system that limits root too, and that compresses: Btrfs in an image, for tests as
root in a mount namespace of their own, with which it goes."""

import subprocess
from pathlib import Path

IMAGE_BYTES = 256 << 20
"""Of which nothing is there before it is written."""


def mount_image(image: Path, folder: Path, options: str) -> None:
    """A new one, on a folder that is there."""
    with image.open("wb") as file:
        file.truncate(IMAGE_BYTES)
    _done("mkfs.btrfs", "--quiet", image)
    _done("mount", "-o", f"loop,{options}", image, folder)


def limited_folder(image: Path, mounted: Path, limit_bytes: int) -> Path:
    """With a quota, on a file system that has far more free."""
    mount_image(image, mounted, "compress=no")
    folder = mounted / "limited"
    _done("btrfs", "quota", "enable", mounted)
    _done("btrfs", "subvolume", "create", folder)
    _done("btrfs", "qgroup", "limit", str(limit_bytes), folder)
    return folder


def _done(*command: str | Path) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
