"""How are the pods a JobSet with one indexed Job?

Source: JobSet 0.10, config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml.
"""

from broadgauge.manifests.config_maps import metadata
from broadgauge.manifests.indexed_job import job_spec
from broadgauge.manifests.pod_template import pod_template
from broadgauge.manifests.queues import is_suspended, queue_labels
from broadgauge.manifests.request import JobRequest
from broadgauge.manifests.yaml_text import Manifest

REPLICATED_JOB = "node"
"""Its pods are `<name>-node-0-<index>`."""


def job_set(request: JobRequest) -> tuple[Manifest, ...]:
    """One object."""
    about = metadata(request, request.name)
    about["labels"] |= queue_labels(request)
    spec = job_set_spec({"spec": job_spec(request, pod_template(request))})
    spec["ttlSecondsAfterFinished"] = int(request.settings.ttl_s)
    if is_suspended(request):
        spec["suspend"] = True
    kind = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}
    return ({**kind, "metadata": about, "spec": spec},)


def job_set_spec(job_template: Manifest) -> Manifest:
    """Of a JobSet, and of a training runtime, which becomes one."""
    return {
        "failurePolicy": {"maxRestarts": 0},
        "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
        "replicatedJobs": [{"name": REPLICATED_JOB, "replicas": 1, "template": job_template}],
    }
