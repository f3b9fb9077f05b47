"""What may a pod's processes do? As little as training needs: they are nobody's root.

Source: Kubernetes, "Pod Security Standards", Restricted; OpenShift, the SCC `restricted-v2`.
"""

from broadgauge.manifests.job import PodJob
from broadgauge.manifests.yaml_text import Manifest


def of_pod(job: PodJob) -> Manifest:
    """Users are said of our container: the init container that the training operator adds to a
    PyTorchJob's workers is root's. A volume whose top folder is the group's already is not walked
    through again."""
    found: Manifest = {"seccompProfile": {"type": "RuntimeDefault"}}
    group = job.settings.fs_group
    if group is not None:
        found |= {"fsGroup": group, "fsGroupChangePolicy": "OnRootMismatch"}
    return found


def of_container(job: PodJob) -> Manifest:
    """Of the ranks. Where no user is asked for, OpenShift gives one of the namespace's own, and
    elsewhere the image says which."""
    user = job.settings.run_as_user
    return {
        "runAsNonRoot": True,
        **({} if user is None else {"runAsUser": user}),
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
