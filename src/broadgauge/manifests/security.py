"""What may a pod's processes do? As little as training needs: they are nobody's root.

Source: Kubernetes, "Pod Security Standards", Restricted; OpenShift, the SCC `restricted-v2`.
"""

from broadgauge.manifests.job import PodJob
from broadgauge.manifests.yaml_text import Manifest


def of_pod(job: PodJob) -> Manifest:
    """Where no user is asked for, OpenShift gives one of the namespace's own, and elsewhere the
    image says which. A volume whose top folder is the group's already is not walked through again.
    """
    found: Manifest = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    if job.settings.run_as_user is not None:
        found["runAsUser"] = job.settings.run_as_user
    group = job.settings.fs_group
    if group is not None:
        found |= {"fsGroup": group, "fsGroupChangePolicy": "OnRootMismatch"}
    return found


def of_container() -> Manifest:
    """Of the ranks."""
    return {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
