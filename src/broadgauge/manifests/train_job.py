"""How are the pods a TrainJob of Kubeflow Trainer, with a runtime of our own?

A TrainJob can change a runtime's pods, but adds no container to them, and the runtimes that a
cluster has are for all of its users: so a TrainingRuntime of the namespace is written beside it,
which has the whole pod.
Source: Kubeflow Trainer 2.3, manifests/base/crds/trainer.kubeflow.org_*.yaml;
manifests/base/runtimes/torch_distributed.yaml (the job and its container are named `node`);
pkg/constants (the label that says which job trains). JobSet 0.12, "Pod DNS hostnames".
"""

from broadgauge.manifests import names
from broadgauge.manifests.indexed_job import queue_labels, time_limits
from broadgauge.manifests.job import JobPods
from broadgauge.manifests.pod_template import ContentsOf, pod_template
from broadgauge.manifests.yaml_text import Manifest

GROUP = "trainer.kubeflow.org"
API_VERSION = f"{GROUP}/v1alpha1"
_TRAINS = {f"{GROUP}/trainjob-ancestor-step": "trainer"}
_FRAMEWORK = {f"{GROUP}/framework": "torch"}


def train_job(job: JobPods, contents_of: ContentsOf) -> tuple[Manifest, ...]:
    """The runtime, which must be there first, and the job that refers to it."""
    labels = names.job_labels(job)
    spec: Manifest = {
        "runtimeRef": {"apiGroup": GROUP, "kind": "TrainingRuntime", "name": job.name}
    }
    if job.settings.queue is not None:
        spec["suspend"] = True
    spec["trainer"] = {"numNodes": job.num_pods}
    found = {
        "apiVersion": API_VERSION,
        "kind": "TrainJob",
        "metadata": names.metadata(job, job.name, {**labels, **queue_labels(job)}),
        "spec": spec,
    }
    return (_runtime(job, contents_of), found)


def _runtime(job: JobPods, contents_of: ContentsOf) -> Manifest:
    """Without its policy for torch, which would tell another torchrun than ours where to meet."""
    pods: Manifest = {"backoffLimit": 0, **time_limits(job, with_ttl=False)}
    pods["template"] = pod_template(job, contents_of)
    trainer = {"metadata": {"labels": _TRAINS}, "spec": pods}
    replicated = {"name": names.REPLICATED_JOB, "replicas": 1, "template": trainer}
    labels = names.job_labels(job) | _FRAMEWORK
    return {
        "apiVersion": API_VERSION,
        "kind": "TrainingRuntime",
        "metadata": names.metadata(job, job.name, labels),
        "spec": {
            "mlPolicy": {"numNodes": job.num_pods},
            # One pod that fails ends the job: nothing is started again.
            "template": {
                "spec": {"failurePolicy": {"maxRestarts": 0}, "replicatedJobs": [replicated]}
            },
        },
    }
