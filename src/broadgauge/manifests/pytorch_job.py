"""How are the pods a PyTorchJob of Kubeflow's training operator (v1)?

Source: training-operator 1.9, manifests/base/crds/kubeflow.org_pytorchjobs.yaml; the operator names
pods `<job>-master-0` and `<job>-worker-<n>`, gives each a Service of that name, and tells each its
number in PET_NODE_RANK.
"""

from broadgauge.manifests import names
from broadgauge.manifests.indexed_job import queue_labels, time_limits
from broadgauge.manifests.job import JobPods
from broadgauge.manifests.pod_template import ContentsOf, pod_template
from broadgauge.manifests.yaml_text import Manifest


def pytorch_job(job: JobPods, contents_of: ContentsOf) -> tuple[Manifest, ...]:
    """The first pod is the master, all others are workers. Nothing is started again; when the job
    has ended pods that still run are deleted, which hold GPUs, and others stay to be read."""
    policy: Manifest = {"backoffLimit": 0, "cleanPodPolicy": "Running", **time_limits(job)}
    if job.settings.queue is not None:
        policy["suspend"] = True
    replicas: Manifest = {"Master": _replicas(job, contents_of, 1, first_pod=0)}
    if job.num_pods > 1:
        replicas["Worker"] = _replicas(job, contents_of, job.num_pods - 1, first_pod=1)
    return (
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "PyTorchJob",
            "metadata": names.metadata(job, job.name, names.job_labels(job) | queue_labels(job)),
            "spec": {"runPolicy": policy, "pytorchReplicaSpecs": replicas},
        },
    )


def _replicas(job: JobPods, contents_of: ContentsOf, number: int, *, first_pod: int) -> Manifest:
    template = pod_template(job, contents_of, first_pod)
    return {"replicas": number, "restartPolicy": "Never", "template": template}
