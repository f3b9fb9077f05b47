"""How are the pods a PyTorchJob of Kubeflow's training-operator (v1)?

Source: training-operator 1.9, manifests/base/crds/kubeflow.org_pytorchjobs.yaml.
"""

from broadgauge.manifests.config_maps import metadata
from broadgauge.manifests.pod_template import pod_template
from broadgauge.manifests.queues import queue_labels
from broadgauge.manifests.request import JobRequest
from broadgauge.manifests.yaml_text import Manifest


def pytorch_job(request: JobRequest) -> tuple[Manifest, ...]:
    """The first pod is the master, all others are workers."""
    template = pod_template(request)
    replica = {"restartPolicy": "Never", "template": template}
    replicas: Manifest = {"Master": {"replicas": 1, **replica}}
    if request.num_pods > 1:
        replicas["Worker"] = {"replicas": request.num_pods - 1, **replica}
    about = metadata(request, request.name)
    about["labels"] |= queue_labels(request)
    job = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": about,
        "spec": {"runPolicy": _run_policy(request), "pytorchReplicaSpecs": replicas},
    }
    return (job,)


def _run_policy(request: JobRequest) -> Manifest:
    """Nothing is started again, and pods stay until they were read."""
    settings = request.settings
    policy: Manifest = {
        "backoffLimit": 0,
        "cleanPodPolicy": "None",
        "ttlSecondsAfterFinished": int(settings.ttl_s),
    }
    if settings.deadline_s is not None:
        policy["activeDeadlineSeconds"] = int(settings.deadline_s)
    if settings.queue is not None and settings.queue.kueue is not None:
        policy["suspend"] = True
    if settings.queue is not None and settings.queue.volcano is not None:
        policy["schedulingPolicy"] = {
            "minAvailable": request.num_pods,
            "queue": settings.queue.volcano,
        }
    return policy
