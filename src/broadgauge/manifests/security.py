"""What may a pod's processes do? As little as training and its networks need.

Source: Kubernetes, "Pod Security Standards", Restricted; OpenShift, the SCC `restricted-v2`.
"""

from broadgauge.manifests.job import JobPods
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.specs.kubernetes.settings import Kubernetes


def of_pod(job: JobPods) -> Manifest:
    """Users are said of our container: the init container that the training operator adds to a
    PyTorchJob's workers is root's. A volume whose top folder is the group's already is not walked
    through again."""
    found: Manifest = {"seccompProfile": {"type": "RuntimeDefault"}}
    group = job.settings.fs_group
    if group is not None:
        found |= {"fsGroup": group, "fsGroupChangePolicy": "OnRootMismatch"}
    return found


def of_container(job: JobPods) -> Manifest:
    """Of the ranks. Where no user is asked for, OpenShift gives one of the namespace's own, and
    elsewhere the image says which."""
    found = of_helper(job.settings)
    if needs_ipc_lock(job):
        found["capabilities"]["add"] = ["IPC_LOCK"]
    return found


def of_helper(settings: Kubernetes) -> Manifest:
    """Of what fetches or waits for model and data: the ranks' user, who has to read them."""
    user = settings.run_as_user
    return {
        "runAsNonRoot": user != 0,
        **({} if user is None else {"runAsUser": user}),
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }


def locks_memory(job: JobPods) -> bool:
    """RDMA pins more memory than most container engines let a process lock."""
    return job.needs_locked_memory and not job.settings.memlock_is_raised


def needs_ipc_lock(job: JobPods) -> bool:
    """Another user's process has no effective capability, whatever its container is given.

    Source: capabilities(7), "Transformation of capabilities during execve()"; Kubernetes, KEP-2763
    (ambient capabilities), which is not built.
    """
    return locks_memory(job) and job.settings.run_as_user == 0


def of_address_container() -> Manifest:
    """It alone may change addresses, and as root, as `needs_ipc_lock` says why."""
    return {
        "runAsNonRoot": False,
        "runAsUser": 0,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]},
    }
