"""What has a pod of ours, whatever runs in it: where it may run, as whom, with which variables?"""

from collections.abc import Container, Mapping

from broadgauge.manifests import security
from broadgauge.manifests.expansion import not_expanded
from broadgauge.manifests.job import JobPods
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.specs.kubernetes.pod_volumes import SCRATCH
from broadgauge.specs.kubernetes.settings import SecretRef, Toleration

OF_ANY_USER = {
    "HOME": SCRATCH,
    "TMPDIR": SCRATCH,
    "USER": "broadgauge",
    "LOGNAME": "broadgauge",
    "PYTHONUNBUFFERED": "1",
}
"""A random user id has no name and no home, which libraries ask for."""


def pod_frame(
    job: JobPods, *, affinity: Manifest | None = None, runtime_class: str | None = None
) -> Manifest:
    """A pod's specification without containers and volumes."""
    settings = job.settings
    found: Manifest = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": security.of_pod(job),
    }
    if affinity:
        found["affinity"] = affinity
    if settings.service_account is not None:
        found["serviceAccountName"] = settings.service_account
    if settings.image_pull_secrets:
        found["imagePullSecrets"] = [{"name": name} for name in settings.image_pull_secrets]
    if settings.priority_class is not None:
        found["priorityClassName"] = settings.priority_class
    if runtime_class is not None:
        found["runtimeClassName"] = runtime_class
    if settings.node_selector:
        found["nodeSelector"] = dict(settings.node_selector)
    if settings.tolerations:
        found["tolerations"] = [_toleration(each) for each in settings.tolerations]
    return found


def _toleration(toleration: Toleration) -> Manifest:
    form = toleration.model_dump(mode="json", exclude_none=True)
    return {"operator": form.pop("operator"), **form}


def plain_variables(values: Mapping[str, str], but: Container[str] = ()) -> list[Manifest]:
    """As they are written. `but`: names that come from elsewhere."""
    return [
        {"name": name, "value": not_expanded(value)}
        for name, value in values.items()
        if name not in but
    ]


def secret_variables(refs: Mapping[str, SecretRef]) -> list[Manifest]:
    """A secret by reference: its value is in the Secret, and in no file."""
    return [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": ref.secret, "key": ref.key}}}
        for name, ref in refs.items()
    ]
