"""What is mounted in a node for a storage, and with which options?

A bucket is mounted by rclone, as SkyPilot 0.14 does: MOUNT without a cache of its own (where it has
no goofys), MOUNT_CACHED with all files kept on the node's disk and written to the bucket behind.
Source of the flags: `get_mount_cached_cmd` and `get_s3_mount_cmd` of sky/data/mounting_utils.py.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from broadgauge.agent.emulated.errors import building
from broadgauge.agent.emulated.node_files import HINT_MOUNT
from broadgauge.agent.emulated.nodes import Node, returning_to
from broadgauge.agent.emulated.storage.daemons import await_ready, start_program
from broadgauge.agent.emulated.storage.store import SFTP_PORT
from broadgauge.agent.emulated.storage.tools import find_program
from broadgauge.agent.emulated.syscalls import MountFlag, mount
from broadgauge.messages.emulated_storage import (
    BUCKET,
    STORAGE_FOLDER,
    StoragePlan,
    storage_folder,
    store_endpoint,
    store_host,
)

SKYPILOT_CACHE_BYTES = 10 * 1024**3
_HINT = "is /dev/fuse open to this user, and fusermount3 there? The log has the rest"
_UNCACHED = "dir_cache=no,attr_timeout=0,entry_timeout=0,negative_timeout=0"
"""What one node has written and closed, another sees when it opens it, as on NFS."""
_CACHED = (
    "--vfs-cache-mode=full",
    "--dir-cache-time=10s",
    "--vfs-cache-poll-interval=10s",
    "--vfs-fast-fingerprint",
    "--vfs-write-back=1s",
)
_PLAIN = ("--dir-cache-time=5s",)
"""As long as goofys keeps what it saw, by `_STAT_CACHE_TTL` there; rclone's own five minutes would
show a file of another node, or of the bucket itself, that late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MountPlan:
    """One storage on one node."""

    storage: StoragePlan
    node: Node
    disk: Path
    """A folder of the node's own disk."""
    log: Path

    @property
    def target(self) -> str:
        return storage_folder(self.storage.name)

    def in_node(self, work: Callable[[], None]) -> None:
        """Do it in the node's mount namespace."""
        what = f"mount {self.storage.name} in {self.node.hostname}"
        with building(what, HINT_MOUNT), returning_to(self.node.home):
            self.node.namespaces.enter()
            Path(self.target).mkdir(parents=True, exist_ok=True)
            Path(STORAGE_FOLDER).chmod(0o755)
            work()


def mount_disk(plan: MountPlan) -> None:
    """A folder of the scratch disk."""
    source = plan.disk / plan.storage.name
    source.mkdir(parents=True)
    plan.in_node(lambda: mount(str(source), plan.target, None, MountFlag.BIND))


def mount_memory(plan: MountPlan, most_bytes: int) -> None:
    options = f"mode=1777,size={most_bytes}"
    flags = MountFlag.NOSUID | MountFlag.NODEV
    plan.in_node(lambda: mount("tmpfs", plan.target, "tmpfs", flags, options))


def mount_bucket(plan: MountPlan, keys: Mapping[str, str]) -> None:
    """Ready when this returns. Raises EmulationError."""
    program = find_program("rclone")
    assert program is not None, "missing_for was asked"
    cache = plan.disk / f"{plan.storage.name}.cache"
    argv = [program, "mount", f"store:{BUCKET}", plan.target, "--allow-other"]
    argv += [f"--cache-dir={cache}", "--log-level=NOTICE"]
    if plan.storage.kind == "s3-cached":
        most_bytes = plan.storage.cache_bytes or SKYPILOT_CACHE_BYTES
        argv += [*_CACHED, f"--vfs-cache-max-size={most_bytes}B"]
    else:
        argv += _PLAIN
    variables = {
        "RCLONE_CONFIG": "/nonexistent/rclone.conf",
        "RCLONE_CONFIG_STORE_TYPE": "s3",
        "RCLONE_CONFIG_STORE_PROVIDER": "Other",
        "RCLONE_CONFIG_STORE_ENDPOINT": store_endpoint(plan.storage.store),
        "RCLONE_CONFIG_STORE_ACCESS_KEY_ID": keys["AWS_ACCESS_KEY_ID"],
        "RCLONE_CONFIG_STORE_SECRET_ACCESS_KEY": keys["AWS_SECRET_ACCESS_KEY"],
        "RCLONE_CONFIG_STORE_REGION": "us-east-1",
    }
    _start_mount(plan, argv, variables)


def mount_shared(plan: MountPlan, folder: Path) -> None:
    """The store's folder by SSHFS without SSH: nothing is encrypted, the link is what limits."""
    program = find_program("sshfs")
    assert program is not None, "missing_for was asked"
    argv = [program, "-f", f"{store_host(plan.storage.store)}:{folder}", plan.target]
    argv += ["-o", f"directport={SFTP_PORT},allow_other,{_UNCACHED}"]
    _start_mount(plan, argv, {})


def _start_mount(plan: MountPlan, argv: list[str], variables: Mapping[str, str]) -> None:
    plan.in_node(lambda: None)
    daemon = start_program(
        argv,
        what=f"the mount of {plan.storage.name} in {plan.node.hostname}",
        enter=plan.node.enter,
        variables=variables,
        log=plan.log,
    )
    await_ready(daemon, lambda: _is_mounted(daemon.pid, plan.target), hint=_HINT)


def _is_mounted(pid: int, target: str) -> bool:
    """As the process sees it, which is in the node: to look at the mount itself might hang."""
    try:
        lines = Path(f"/proc/{pid}/mountinfo").read_text().splitlines()
    except OSError:
        return False
    return any(line.split(" ")[4] == target and " - fuse" in line for line in lines)
