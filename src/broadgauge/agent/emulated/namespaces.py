"""How does a process become the root of an emulated cluster, and a rank an ordinary process?

Order: the outer process calls `enter_cluster_namespaces` and forks; the child is PID 1 of the
cluster and calls `prepare_cluster_root`; a rank, between its fork and its exec, first enters its
node and then calls `drop_privileges_for_rank`.
"""

import os
from pathlib import Path

from broadgauge.agent.emulated.errors import building
from broadgauge.agent.emulated.syscalls import (
    CAP_NET_ADMIN,
    CAP_SYS_ADMIN,
    CloneFlag,
    MountFlag,
    drop_every_capability,
    effective_capabilities,
    mount,
    unshare,
)

_CLUSTER_NAMESPACES = (
    CloneFlag.NEWPID | CloneFlag.NEWNET | CloneFlag.NEWNS | CloneFlag.NEWUTS | CloneFlag.NEWIPC
)

HINT_NAMESPACES = (
    "`broadgauge.agent.emulated.ability` names what the kernel refuses and the exact fix"
)
HINT_PROC = (
    "a container hides parts of /proc: start it with --security-opt systempaths=unconfined "
    "(Docker) or --security-opt unmask=ALL (Podman)"
)


def needs_user_namespace() -> bool:
    """Must this user enter a user namespace first? Root with CAP_SYS_ADMIN must not.

    Root in a container without that capability is treated like an ordinary user.
    """
    wanted = 1 << CAP_SYS_ADMIN | 1 << CAP_NET_ADMIN
    return os.geteuid() != 0 or effective_capabilities() & wanted != wanted


def enter_cluster_namespaces() -> None:
    """Enter new network, mount, UTS and IPC namespaces; the next child is PID 1 of a new PID one.

    An ordinary user also enters a user namespace, in which it is uid 0 and gid 0. Call it in a
    process of one thread: unshare(NEWUSER) refuses others.
    """
    if not needs_user_namespace():
        with building("enter the cluster's namespaces", HINT_NAMESPACES):
            unshare(_CLUSTER_NAMESPACES)
        return
    uid, gid = os.geteuid(), os.getegid()
    with building("enter the cluster's user namespace", HINT_NAMESPACES):
        unshare(CloneFlag.NEWUSER | _CLUSTER_NAMESPACES)
    with building("map this user to 0 in the cluster's user namespace", HINT_NAMESPACES):
        _map_ids(inside=(0, 0), outside=(uid, gid))


def prepare_cluster_root() -> None:
    """Cut PID 1's mounts off from the host's and mount the PID namespace's own /proc."""
    with building("make the cluster's mounts private", HINT_NAMESPACES):
        mount("none", "/", None, MountFlag.REC | MountFlag.PRIVATE)
    with building("mount the cluster's own /proc", HINT_PROC):
        mount("proc", "/proc", "proc", MountFlag.NOSUID | MountFlag.NODEV | MountFlag.NOEXEC)


def drop_privileges_for_rank(real_uid: int, real_gid: int) -> None:
    """Leave this process, just before its exec, with the user's ids and no capability at all.

    `real_uid` and `real_gid` are the user's outside. Where a user namespace maps them to 0, the
    rank enters a nested one that maps them back. Call it after `Node.enter`, which needs the
    capabilities given up here.
    """
    if os.getuid() != real_uid or os.getgid() != real_gid:
        uid, gid = os.getuid(), os.getgid()
        with building("enter the rank's user namespace", HINT_NAMESPACES):
            unshare(CloneFlag.NEWUSER)
        with building("map the rank back to its real user", HINT_NAMESPACES):
            _map_ids(inside=(real_uid, real_gid), outside=(uid, gid))
    with building("drop the rank's capabilities", HINT_NAMESPACES):
        drop_every_capability()


def _map_ids(*, inside: tuple[int, int], outside: tuple[int, int]) -> None:
    """Write the current user namespace's maps: one user and one group each.

    An unprivileged gid_map needs setgroups denied first. Source: user_namespaces(7).
    """
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{inside[0]} {outside[0]} 1")
    Path("/proc/self/gid_map").write_text(f"{inside[1]} {outside[1]} 1")
