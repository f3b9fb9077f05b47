"""How are the pods an indexed Job of Kubernetes itself, with a name for each?

Source: Kubernetes, "Job with Pod-to-Pod Communication": with completion mode Indexed a pod's
hostname is `<job>-<index>`, and a headless Service of the subdomain's name makes it a DNS name.
Kueue, "Run Kubernetes Jobs": a label on the job, which is created suspended.
"""

from broadgauge.manifests import names
from broadgauge.manifests.job import PodJob
from broadgauge.manifests.pod_template import pod_template
from broadgauge.manifests.yaml_text import Manifest

KUEUE_LABEL = "kueue.x-k8s.io/queue-name"


def indexed_job(job: PodJob) -> tuple[Manifest, ...]:
    """The Service where there are several pods, then the Job."""
    about = names.metadata(job, job.name, names.job_labels(job))
    spec: Manifest = {
        "completionMode": "Indexed",
        "completions": job.num_pods,
        "parallelism": job.num_pods,
        "backoffLimit": 0,
    }
    settings = job.settings
    if settings.deadline_s is not None:
        spec["activeDeadlineSeconds"] = _whole_seconds(settings.deadline_s)
    if settings.ttl_s is not None:
        spec["ttlSecondsAfterFinished"] = _whole_seconds(settings.ttl_s)
    if settings.queue is not None:
        about["labels"] = {**about["labels"], KUEUE_LABEL: settings.queue.kueue}
        spec["suspend"] = True
    template = pod_template(job)
    found = {"apiVersion": "batch/v1", "kind": "Job", "metadata": about, "spec": spec}
    if job.num_pods == 1:
        spec["template"] = template
        return (found,)
    spec["template"] = template | {"spec": {"subdomain": job.name, **template["spec"]}}
    return (_service(job), found)


def _whole_seconds(seconds: float) -> int:
    return max(1, round(seconds))


def _service(job: PodJob) -> Manifest:
    """Names are known before pods are ready: they look for each other while they start."""
    spec = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {names.EXPERIMENT: job.prefix, names.CASE: job.word},
    }
    about = names.metadata(job, job.name, names.job_labels(job))
    return {"apiVersion": "v1", "kind": "Service", "metadata": about, "spec": spec}
