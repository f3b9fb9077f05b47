"""How are the pods an indexed Job of Kubernetes itself, with a name for each?

Source: Kubernetes, "Job with Pod-to-Pod Communication": with completion mode Indexed a pod's
hostname is `<job>-<index>`, and a headless Service of the subdomain's name makes it a DNS name.
Kueue, "Run Kubernetes Jobs": a label on the job, which is created suspended.
"""

from broadgauge.manifests import names
from broadgauge.manifests.job import JobPods
from broadgauge.manifests.pod_template import ContentsOf, pod_template
from broadgauge.manifests.yaml_text import Manifest

KUEUE_LABEL = "kueue.x-k8s.io/queue-name"


def indexed_job(job: JobPods, contents_of: ContentsOf) -> tuple[Manifest, ...]:
    """The Service where there are several pods, then the Job."""
    about = names.metadata(job, job.name, names.job_labels(job) | queue_labels(job))
    spec: Manifest = {
        "completionMode": "Indexed",
        "completions": job.num_pods,
        "parallelism": job.num_pods,
        "backoffLimit": 0,
    }
    spec |= time_limits(job)
    if job.settings.queue is not None:
        spec["suspend"] = True
    template = pod_template(job, contents_of)
    found = {"apiVersion": "batch/v1", "kind": "Job", "metadata": about, "spec": spec}
    if job.num_pods == 1:
        spec["template"] = template
        return (found,)
    spec["template"] = template | {"spec": {"subdomain": job.name, **template["spec"]}}
    return (_service(job), found)


def queue_labels(job: JobPods) -> dict[str, str]:
    """On what Kueue is to admit, which is created suspended."""
    queue = job.settings.queue
    return {} if queue is None else {KUEUE_LABEL: queue.kueue}


def time_limits(job: JobPods, *, with_ttl: bool = True) -> Manifest:
    """Of a Job, by itself or within another's."""
    settings, found = job.settings, {}
    if settings.deadline_s is not None:
        found["activeDeadlineSeconds"] = _whole_seconds(settings.deadline_s)
    if with_ttl and settings.ttl_s is not None:
        found["ttlSecondsAfterFinished"] = _whole_seconds(settings.ttl_s)
    return found


def _whole_seconds(seconds: float) -> int:
    return max(1, round(seconds))


def _service(job: JobPods) -> Manifest:
    """Names are known before pods are ready: they look for each other while they start."""
    spec = {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": names.pods_selector(job),
    }
    about = names.metadata(job, job.name, names.job_labels(job))
    return {"apiVersion": "v1", "kind": "Service", "metadata": about, "spec": spec}
