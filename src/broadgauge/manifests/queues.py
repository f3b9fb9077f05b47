"""How is a job told to a queue that admits all of its pods or none?

Kueue: a label on the job, which is created suspended. Volcano: a PodGroup named as the job, which
its pods name; training-operator with `--gang-scheduler-name=volcano` takes that same group.
Source: Kueue 0.10, "Run Kubernetes Jobs"; Volcano 1.10, scheduling.volcano.sh/v1beta1 PodGroup.
"""

from broadgauge.manifests.config_maps import metadata
from broadgauge.manifests.request import JobRequest
from broadgauge.manifests.yaml_text import Manifest

KUEUE_LABEL = "kueue.x-k8s.io/queue-name"


def queue_labels(request: JobRequest) -> dict[str, str]:
    """On the job itself."""
    queue = request.settings.queue
    return {} if queue is None or queue.kueue is None else {KUEUE_LABEL: queue.kueue}


def is_suspended(request: JobRequest) -> bool:
    """Does it wait for its queue?"""
    return bool(queue_labels(request))


def pod_groups(request: JobRequest) -> tuple[Manifest, ...]:
    """Volcano's; empty where another or nobody admits the job."""
    settings = request.settings
    if settings.queue is None or settings.queue.volcano is None:
        return ()
    spec: Manifest = {"minMember": request.num_pods, "queue": settings.queue.volcano}
    if settings.priority_class is not None:
        spec["priorityClassName"] = settings.priority_class
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": metadata(request, request.name),
        "spec": spec,
    }
    return (group,)
