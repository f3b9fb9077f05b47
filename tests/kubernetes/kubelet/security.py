"""As whom does a container run, with which capabilities and limits?

Sources: the Kubernetes API reference (SecurityContext, PodSecurityContext), containerd's default
capabilities (contrib/seccomp and oci/spec.go), OpenShift's "Managing security context
constraints" (uid ranges of namespaces), linux/capability.h for the numbers.
"""

from dataclasses import dataclass
from typing import Any

from tests.kubernetes.kubelet.config import Image
from tests.kubernetes.kubelet.environment import ConfigError

Json = dict[str, Any]
UID_RANGE = "openshift.io/sa.scc.uid-range"

_NAMES = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
]
CAPABILITIES = {name: number for number, name in enumerate(_NAMES)}
DEFAULT_CAPABILITIES = frozenset(
    [
        "CHOWN",
        "DAC_OVERRIDE",
        "FSETID",
        "FOWNER",
        "MKNOD",
        "NET_RAW",
        "SETGID",
        "SETUID",
        "SETFCAP",
        "SETPCAP",
        "NET_BIND_SERVICE",
        "SYS_CHROOT",
        "KILL",
        "AUDIT_WRITE",
    ]
)


@dataclass(frozen=True, kw_only=True)
class Identity:
    """As whom a container runs."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    capabilities: tuple[int, ...]
    """Numbers; the bounding set. A user other than root has none in effect."""
    no_new_privileges: bool
    read_only_root: bool


def identity(container: Json, pod: Json, namespace: Json | None, image: Image) -> Identity:
    """Raises ConfigError where runAsNonRoot is asked and the user would be root."""
    own = container.get("securityContext") or {}
    shared = pod["spec"].get("securityContext") or {}

    def said(name: str) -> Any:
        return own.get(name, shared.get(name))

    given_uid = _uid_of_namespace(namespace)
    uid = said("runAsUser")
    if uid is None:
        uid = image.user if given_uid is None else given_uid
    if uid == 0 and said("runAsNonRoot"):
        place = f'(pod: "{_place(pod)}", container: {container["name"]})'
        if said("runAsUser") == 0:
            raise ConfigError(f"container's runAsUser breaks non-root policy {place}")
        raise ConfigError(f"container has runAsNonRoot and image will run as root {place}")
    gid = said("runAsGroup")
    groups = set(shared.get("supplementalGroups") or ())
    group = fs_group(pod, namespace)
    if group is not None:
        groups.add(group)
    return Identity(
        uid=int(uid),
        gid=0 if gid is None else int(gid),
        groups=tuple(sorted(groups)),
        capabilities=_capabilities(own),
        no_new_privileges=own.get("allowPrivilegeEscalation") is False,
        read_only_root=bool(own.get("readOnlyRootFilesystem")),
    )


def fs_group(pod: Json, namespace: Json | None) -> int | None:
    """Which group owns the pod's volumes? OpenShift gives the namespace's first."""
    asked = (pod["spec"].get("securityContext") or {}).get("fsGroup")
    return _uid_of_namespace(namespace) if asked is None else int(asked)


def _uid_of_namespace(namespace: Json | None) -> int | None:
    """ "1000680000/10000": the first of 10,000."""
    annotations = ((namespace or {}).get("metadata") or {}).get("annotations") or {}
    text = annotations.get(UID_RANGE)
    return None if text is None else int(text.replace("-", "/").partition("/")[0])


def _capabilities(context: Json) -> tuple[int, ...]:
    if context.get("privileged"):
        return tuple(CAPABILITIES.values())
    asked = context.get("capabilities") or {}
    dropped = {name.upper().removeprefix("CAP_") for name in asked.get("drop") or ()}
    added = {name.upper().removeprefix("CAP_") for name in asked.get("add") or ()}
    kept = set() if "ALL" in dropped else set(DEFAULT_CAPABILITIES) - dropped
    kept |= set(CAPABILITIES) if "ALL" in added else added
    unknown = sorted(kept - set(CAPABILITIES))
    if unknown:
        raise ConfigError(f'unknown capability: "CAP_{unknown[0]}"')
    return tuple(sorted(CAPABILITIES[name] for name in kept))


def _place(pod: Json) -> str:
    metadata = pod["metadata"]
    return f"{metadata['name']}_{metadata['namespace']}({metadata['uid']})"
