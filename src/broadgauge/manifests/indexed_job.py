"""How are the pods an indexed Job of Kubernetes itself, with a name for each?

Source: Kubernetes, "Job with Pod-to-Pod Communication": with completion mode Indexed a pod's
hostname is `<job>-<index>`, and a headless Service of the subdomain's name makes it a DNS name.
"""

from broadgauge.manifests import labels
from broadgauge.manifests.config_maps import metadata
from broadgauge.manifests.pod_template import pod_template
from broadgauge.manifests.queues import is_suspended, queue_labels
from broadgauge.manifests.request import JobRequest
from broadgauge.manifests.yaml_text import Manifest


def indexed_job(request: JobRequest) -> tuple[Manifest, ...]:
    """The Service, then the Job."""
    about = metadata(request, request.name)
    about["labels"] |= queue_labels(request)
    spec = job_spec(request, pod_template(request))
    spec["template"]["spec"]["subdomain"] = request.name
    spec["ttlSecondsAfterFinished"] = int(request.settings.ttl_s)
    if is_suspended(request):
        spec["suspend"] = True
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": about, "spec": spec}
    return (_service(request), job)


def job_spec(request: JobRequest, template: Manifest) -> Manifest:
    """Of a Job, alone or within a JobSet: every pod once."""
    spec: Manifest = {
        "completionMode": "Indexed",
        "completions": request.num_pods,
        "parallelism": request.num_pods,
        "backoffLimit": 0,
    }
    if request.settings.deadline_s is not None:
        spec["activeDeadlineSeconds"] = int(request.settings.deadline_s)
    return {**spec, "template": template}


def _service(request: JobRequest) -> Manifest:
    """Names are known before pods are ready: they look for each other while they start."""
    spec = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {labels.JOB: request.name},
    }
    about = metadata(request, request.name)
    return {"apiVersion": "v1", "kind": "Service", "metadata": about, "spec": spec}
