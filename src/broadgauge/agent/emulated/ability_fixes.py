"""What must be changed on this machine when the kernel refuses a step of the emulation?

The order of the rules is from the most telling sign to the least.
"""

import errno
import os
from pathlib import Path

DOCKER_FIX = (
    "this is a container whose seccomp profile or capabilities refuse namespaces: start it with "
    "`--cap-add SYS_ADMIN --cap-add NET_ADMIN --security-opt seccomp=unconfined "
    "--security-opt apparmor=unconfined --security-opt systempaths=unconfined` (Docker; Podman: "
    "`--security-opt unmask=ALL` for the last), or run outside of the container"
)
APPARMOR_FIX = (
    "AppArmor strips the capabilities of ordinary users' namespaces (Ubuntu 23.10 and later): "
    "`sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`, or run as root"
)
MAX_NAMESPACES_FIX = (
    "`sudo sysctl -w user.max_user_namespaces=15000` (`sysctl -a | grep user.max_` shows the "
    "limits of the other kinds), or run as root"
)
DEBIAN_FIX = "`sudo sysctl -w kernel.unprivileged_userns_clone=1`, or run as root"
_MORE_MODULES = (
    "(Fedora, RHEL: first `sudo dnf install kernel-modules-extra-$(uname -r)`; Debian, Ubuntu "
    "cloud images: the package linux-modules-extra-$(uname -r))"
)
HTB_FIX = f"the kernel lacks sch_htb: `sudo modprobe sch_htb` {_MORE_MODULES}"
NETEM_FIX = f"the kernel lacks sch_netem: `sudo modprobe sch_netem` {_MORE_MODULES}"
FILTER_FIX = f"the kernel lacks cls_u32: `sudo modprobe cls_u32` {_MORE_MODULES}"
VXLAN_FIX = f"the kernel lacks vxlan: `sudo modprobe vxlan` {_MORE_MODULES}"
VETH_FIX = (
    "the kernel lacks veth or bridge: `sudo modprobe -a veth bridge` (Ubuntu cloud images: first "
    "`sudo apt install linux-modules-extra-$(uname -r)`; WSL 2 and custom kernels: CONFIG_VETH, "
    "CONFIG_BRIDGE)"
)
PROC_FIX = (
    "a container hides parts of /proc: start it with --security-opt systempaths=unconfined "
    "(Docker) or --security-opt unmask=ALL (Podman)"
)
COUNTER_FIX = "the kernel lacks clsact or u32: `sudo modprobe -a sch_ingress cls_u32`"
USER_NAMESPACES_FIX = "the kernel has no user namespaces (CONFIG_USER_NS): run as root"
POD_FIX = "this is a pod: give its container securityContext.privileged: true, or run on the host"
SECURITY_MODULE_FIX = (
    "a security module refuses it (`sudo dmesg | tail` names the denial); or run as root"
)
INSTALL_FIX = (
    "the reason names it; if it is a missing pyroute2, which builds the links: "
    "`pip install 'broadgauge[torch]'`"
)
BUSY_FIX = "the machine is too busy to build two nodes in time: try again when it is idle"
LAST_FIX = "run as root; if that fails too, use `platform: local`, which shapes nothing"

_MODULE_MISSING = (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV, errno.EAFNOSUPPORT)
"""What the kernel says for a qdisc, filter or link type that no module provides."""


def find_fix(step: str, error_number: int | None, *, root: Path = Path("/")) -> str:
    """Which change makes this step pass? `root` stands for the file system, in tests."""
    is_refusal = error_number in (errno.EPERM, errno.EACCES)
    is_missing = error_number in _MODULE_MISSING
    is_user = os.geteuid() != 0
    rules = (
        (error_number == errno.ENOSPC, MAX_NAMESPACES_FIX),
        (is_user and _setting(root, "user/max_user_namespaces") == "0", MAX_NAMESPACES_FIX),
        (error_number == errno.EINVAL and "user namespace" in step, USER_NAMESPACES_FIX),
        (is_refusal and "/proc" in step, PROC_FIX),
        (is_missing and "netem" in step, NETEM_FIX),
        (is_missing and "u32" in step, FILTER_FIX),
        (is_missing and "VXLAN" in step, VXLAN_FIX),
        (is_missing and "HTB" in step, HTB_FIX),
        (is_missing and "counter" in step, COUNTER_FIX),
        (is_missing and ("veth" in step or "bridge" in step), VETH_FIX),
        (
            is_refusal and is_user and _setting(root, "kernel/unprivileged_userns_clone") == "0",
            DEBIAN_FIX,
        ),
        (
            is_refusal
            and is_user
            and _setting(root, "kernel/apparmor_restrict_unprivileged_userns") == "1",
            APPARMOR_FIX,
        ),
        (is_refusal and "KUBERNETES_SERVICE_HOST" in os.environ, POD_FIX),
        (is_refusal and (_is_container(root) or not is_user), DOCKER_FIX),
        (is_refusal, SECURITY_MODULE_FIX),
        (error_number is None, INSTALL_FIX),
    )
    return next((fix for holds, fix in rules if holds), LAST_FIX)


def _is_container(root: Path) -> bool:
    return any((root / sign).exists() for sign in (".dockerenv", "run/.containerenv"))


def _setting(root: Path, name: str) -> str | None:
    """What does this sysctl say? None where the kernel has none of that name."""
    try:
        return (root / "proc/sys" / name).read_text().strip()
    except OSError:
        return None
