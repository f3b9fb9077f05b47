"""How are the pods a TrainJob of Kubeflow's trainer (v2), which needs a runtime?

Ours is written beside it, so that all of the pod is as we mean it. A ClusterTrainingRuntime that is
there gets what a TrainJob can override: the rest of the pod is the runtime's.
Source: trainer 2.1, manifests/base/crds/trainer.kubeflow.org_{trainjobs,trainingruntimes}.yaml;
manifests/base/runtimes/torch_distributed.yaml (the job and its container are named `node`).
"""

from broadgauge.manifests import environment, labels
from broadgauge.manifests.config_maps import metadata
from broadgauge.manifests.indexed_job import job_spec
from broadgauge.manifests.job_set import REPLICATED_JOB, job_set_spec
from broadgauge.manifests.pod_template import (
    command,
    one_a_node,
    placement,
    pod_metadata,
    pod_template,
    resources,
)
from broadgauge.manifests.queues import is_suspended, queue_labels
from broadgauge.manifests.request import JobRequest
from broadgauge.manifests.volumes import mounted
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.specs.errors import InputError

GROUP = "trainer.kubeflow.org"
API_VERSION = f"{GROUP}/v1alpha1"
_STEP_LABEL = {f"{GROUP}/trainjob-ancestor-step": "trainer"}


def train_job(request: JobRequest) -> tuple[Manifest, ...]:
    """Our runtime where none is named, and the job. Raises InputError."""
    about = metadata(request, request.name)
    about["labels"] |= queue_labels(request)
    runtime = request.settings.runtime
    kind = "TrainingRuntime" if runtime is None else "ClusterTrainingRuntime"
    reference = {"apiGroup": GROUP, "kind": kind, "name": runtime or request.name}
    spec: Manifest = {"runtimeRef": reference}
    if is_suspended(request):
        spec["suspend"] = True
    spec["trainer"] = {"numNodes": request.num_pods}
    if runtime is not None:
        spec["trainer"] |= _trainer(request)
        spec["podTemplateOverrides"] = [_overrides(request)]
    job = {"apiVersion": API_VERSION, "kind": "TrainJob", "metadata": about, "spec": spec}
    return (job,) if runtime is not None else (_runtime(request), job)


def _runtime(request: JobRequest) -> Manifest:
    about = metadata(request, request.name)
    about["labels"] |= {f"{GROUP}/framework": "torch"}
    template = {
        "metadata": {"labels": _STEP_LABEL},
        "spec": job_spec(request, pod_template(request)),
    }
    for key in ("completionMode", "completions", "parallelism"):  # the trainer's to set
        template["spec"].pop(key)
    # No time after which the JobSet is deleted: the trainer would make a new one, and run it all
    # again. Source: kubeflow/trainer issue 2981 (2.1), and 3779 of failed ones (2.3).
    spec = {
        "mlPolicy": {"numNodes": request.num_pods, "torch": {"numProcPerNode": 1}},
        "template": {"spec": job_set_spec(template)},
    }
    return {"apiVersion": API_VERSION, "kind": "TrainingRuntime", "metadata": about, "spec": spec}


def _trainer(request: JobRequest) -> Manifest:
    found: Manifest = {
        "image": request.settings.image,
        "command": command(request, "pod"),
        "env": environment.variables(request),
    }
    asked = resources(request)
    return found | ({"resourcesPerNode": asked} if asked else {})


def _overrides(request: JobRequest) -> Manifest:
    """What a TrainJob can say of the pods of another's runtime. Raises InputError."""
    if request.address_map is not None:
        raise InputError(
            f"kubernetes.runtime: {request.settings.runtime} is another's, and a TrainJob can't "
            "add the init container that sets addresses to it",
            hint="leave `runtime` out: a runtime of our own is written beside the job",
        )
    settings = request.settings
    spec: Manifest = {"affinity": one_a_node(request), **placement(request)}
    if settings.service_account is not None:
        spec["serviceAccountName"] = settings.service_account
    if settings.image_pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in settings.image_pull_secrets]
    all_mounted = mounted(request)
    spec["volumes"] = [each.volume for each in all_mounted]
    mounts = [each.mount for each in all_mounted]
    spec["containers"] = [{"name": labels.container_name("trainjob"), "volumeMounts": mounts}]
    return {
        "targetJobs": [{"name": REPLICATED_JOB}],
        "metadata": pod_metadata(request),
        "spec": spec,
    }
