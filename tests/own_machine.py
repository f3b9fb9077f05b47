"""What a worker of pytest-xdist sees of the machine is its own: NICs, ports, mounts, shared memory.

So tests that look for what a run left behind compare nothing that another worker changes meanwhile,
and two that listen at one port don't meet. Processes and files are shared: those of a test are told
by a tag in their environment and by a folder of the test's own.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")


def enter_own_machine() -> None:
    """For this thread and all it starts. Nothing where only root may: then a worker shares them."""
    if not sys.platform.startswith("linux"):
        return
    from broadgauge.agent.emulated.namespaces import needs_user_namespace
    from broadgauge.agent.emulated.syscalls import CloneFlag, MountFlag, mount, unshare

    if needs_user_namespace():
        return
    unshare(CloneFlag.NEWNET | CloneFlag.NEWNS)
    mount("none", "/", None, MountFlag.REC | MountFlag.PRIVATE)
    mount("shm", "/dev/shm", "tmpfs", MountFlag.NOSUID | MountFlag.NODEV, "mode=1777")
    # /sys shows the NICs of the network namespace in which it was mounted.
    with tempfile.TemporaryDirectory() as kept:
        mount(str(_CGROUPS), kept, None, MountFlag.REC | MountFlag.BIND)
        mount("sysfs", "/sys", "sysfs", MountFlag.NOSUID | MountFlag.NODEV | MountFlag.NOEXEC)
        mount(kept, str(_CGROUPS), None, MountFlag.REC | MountFlag.BIND)
        subprocess.run(["umount", "--recursive", kept], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def interfaces() -> frozenset[str]:
    """NICs of this network namespace."""
    return frozenset(path.name for path in Path("/sys/class/net").iterdir())


def mounts() -> frozenset[str]:
    """Places where something is mounted in this mount namespace."""
    lines = Path(f"/proc/{os.getpid()}/mountinfo").read_text().splitlines()
    return frozenset(line.split()[4] for line in lines)
