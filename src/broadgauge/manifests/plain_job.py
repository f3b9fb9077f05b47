"""Which Job is one pod beside the run's own, that reads or fills a volume without GPUs?"""

from dataclasses import dataclass

from broadgauge.manifests import labels, security
from broadgauge.manifests.config_maps import metadata
from broadgauge.manifests.pod_template import cpu_quantity, placement, pull_policy
from broadgauge.manifests.queues import is_suspended, queue_labels
from broadgauge.manifests.request import JobRequest
from broadgauge.manifests.yaml_text import Manifest

_LITTLE = {"cpu": "100m", "memory": str(256 << 20)}
"""A pod that requests nothing is the first to be evicted, and a quota on requests refuses it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainContainer:
    """Of its pod."""

    name: str
    image: str | None
    command: list[str]
    environment: list[Manifest]
    volumes: list[tuple[str, str, Manifest]]
    """Name, path and source of each."""
    cpus: float | None = None
    memory_bytes: int | None = None
    """Requested, and its limit; None: little is requested, and it may use more."""


def plain_job(
    request: JobRequest, name: str, container: PlainContainer, **settings: object
) -> Manifest:
    """`settings`: of the Job's spec, beside its pod. The pod is none of the run's numbered ones,
    and is queued and placed as they are."""
    own = {labels.MANAGED_BY: labels.MANAGER, labels.RUN: request.run}
    about = {"labels": own, "annotations": {"sidecar.istio.io/inject": "false"}}
    template = {"metadata": about, "spec": _pod(request, container)}
    job = metadata(request, name)
    job["labels"] |= queue_labels(request)
    held = {"suspend": True} if is_suspended(request) else {}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": job,
        "spec": {**held, **settings, "template": template},
    }


def _pod(request: JobRequest, container: PlainContainer) -> Manifest:
    settings = request.settings
    spec: Manifest = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": security.of_pod(request),
    }
    if settings.service_account is not None:
        spec["serviceAccountName"] = settings.service_account
    if settings.image_pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in settings.image_pull_secrets]
    if settings.priority_class is not None:
        spec["priorityClassName"] = settings.priority_class
    if settings.runtime_class is not None:
        spec["runtimeClassName"] = settings.runtime_class
    spec |= placement(request)
    spec["containers"] = [
        {
            "name": container.name,
            "image": container.image,
            **pull_policy(request),
            "command": [word.replace("$", "$$") for word in container.command],
            "env": container.environment,
            "resources": _resources(container),
            "securityContext": security.plain(request),
            "volumeMounts": [
                {"name": name, "mountPath": path} for name, path, _ in container.volumes
            ],
        }
    ]
    spec["volumes"] = [{"name": name, **source} for name, _, source in container.volumes]
    return spec


def _resources(container: PlainContainer) -> Manifest:
    asked: dict[str, str] = {}
    if container.cpus is not None:
        asked["cpu"] = cpu_quantity(container.cpus)
    if container.memory_bytes is not None:
        asked["memory"] = str(container.memory_bytes)
    return {"requests": _LITTLE | asked, **({"limits": asked} if asked else {})}
