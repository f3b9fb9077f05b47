"""What may a pod's processes do? As little as their networks allow."""

from broadgauge.manifests.request import JobRequest
from broadgauge.manifests.yaml_text import Manifest


def locks_memory(request: JobRequest) -> bool:
    """RDMA pins memory, more than most container engines let a process lock."""
    is_rdma = any(each.kubernetes and each.kubernetes.is_rdma for each in request.networks)
    return is_rdma and not request.settings.memlock_is_raised


def needs_ipc_lock(request: JobRequest) -> bool:
    """Another user's process has no effective capability, whatever its container is given.

    Source: Kubernetes, KEP-2763 (ambient capabilities), which is not built; capabilities(7).
    """
    return locks_memory(request) and request.settings.run_as_user == 0


def of_pod(request: JobRequest) -> Manifest:
    """Users are said of our containers: the init container that training-operator adds is
    root's. A volume whose top folder is the group's already is not walked through again."""
    found: Manifest = {"seccompProfile": {"type": "RuntimeDefault"}}
    group = request.settings.fs_group
    if group is not None:
        found |= {"fsGroup": group, "fsGroupChangePolicy": "OnRootMismatch"}
    return found


def of_container(request: JobRequest) -> Manifest:
    """Of the ranks."""
    capabilities: Manifest = {"drop": ["ALL"]}
    if needs_ipc_lock(request):
        capabilities["add"] = ["IPC_LOCK"]
    return plain(request) | {"capabilities": capabilities}


def plain(request: JobRequest) -> Manifest:
    """Of a container with nothing to pin. Where no user is asked for, OpenShift gives one of the
    namespace's own, and elsewhere the image says which."""
    return {
        **_user(request),
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }


def _user(request: JobRequest) -> Manifest:
    user = request.settings.run_as_user
    if user is None:
        return {"runAsNonRoot": True}
    return {"runAsNonRoot": user != 0, "runAsUser": user}


def of_address_container() -> Manifest:
    """It alone may change addresses. As root, as `needs_ipc_lock` says why."""
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]},
        "runAsNonRoot": False,
        "runAsUser": 0,
    }
