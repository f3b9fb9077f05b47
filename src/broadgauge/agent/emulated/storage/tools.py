"""Where are the programs that make an emulated storage, and what is missing, with its fix?"""

import os
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path

from broadgauge.agent.emulated.storage.throttle import HINT_THROTTLE, why_no_throttle
from broadgauge.messages.emulated_storage import OBJECT_KINDS, StoragePlan

BUILD_FIX = "`make storage-tools` in a checkout builds it, or put one on PATH"
FUSE_FIX = "Debian, Ubuntu: `sudo apt install fuse3`; Fedora, RHEL: `sudo dnf install fuse3`"
SSHFS_FIX = (
    "Debian, Ubuntu: `sudo apt install sshfs openssh-sftp-server`; Fedora: `sudo dnf install "
    "fuse-sshfs openssh-server`"
)
_SFTP_SERVERS = (
    "/usr/lib/openssh/sftp-server",
    "/usr/libexec/openssh/sftp-server",
    "/usr/lib/ssh/sftp-server",
)
_DEVICE = Path("/dev/fuse")


def find_program(name: str) -> str | None:
    """The one that was built for this, else the one on PATH; None: there is neither.

    The cache is scripts/storage_tools' own.
    """
    built = _cache_folder() / "bin" / name
    return str(built) if built.is_file() else shutil.which(name)


def find_sftp_server() -> str | None:
    """It stands in no folder of PATH."""
    return next((path for path in _SFTP_SERVERS if Path(path).is_file()), None)


def missing_for(plans: Sequence[StoragePlan], *, device: Path = _DEVICE) -> list[tuple[str, str]]:
    """What do these storages need that is not here? Each with what helps."""
    kinds = {plan.kind for plan in plans}
    lacking: list[tuple[str, str]] = []
    if kinds.intersection(OBJECT_KINDS) and find_program("versitygw") is None:
        lacking.append(("there is no versitygw, the S3 server", BUILD_FIX))
    if kinds.intersection(("s3-mount", "s3-cached")) and find_program("rclone") is None:
        lacking.append(("there is no rclone, which mounts buckets", f"{BUILD_FIX} (1.66 or later)"))
    if "shared" in kinds and (shutil.which("sshfs") is None or find_sftp_server() is None):
        lacking.append(("there is no sshfs with its sftp-server", SSHFS_FIX))
    if any(plan.read_gbyte_per_s or plan.write_gbyte_per_s for plan in plans):
        refusal = why_no_throttle()
        lacking += (
            [] if refusal is None else [(f"no disk is throttled here: {refusal}", HINT_THROTTLE)]
        )
    if kinds.intersection(("s3-mount", "s3-cached", "shared")):
        lacking += _missing_fuse(device)
    return lacking


def _missing_fuse(device: Path) -> list[tuple[str, str]]:
    lacking = []
    if shutil.which("fusermount3") is None:
        lacking.append(("there is no fusermount3, by which file systems are mounted", FUSE_FIX))
    if not device.exists():
        lacking.append((f"the kernel shows no {device}", "`sudo modprobe fuse`"))
    elif not os.access(device, os.R_OK | os.W_OK):
        mode = stat.S_IMODE(device.stat().st_mode)
        lacking.append(
            (f"{device} is closed to this user (mode {mode:04o})", f"`sudo chmod 0666 {device}`")
        )
    return lacking


def _cache_folder() -> Path:
    if named := os.environ.get("BROADGAUGE_CACHE"):
        return Path(named) / "storage-tools"
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "broadgauge/storage-tools"
