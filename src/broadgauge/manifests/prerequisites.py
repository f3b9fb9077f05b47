"""What must a cluster have before the files are applied? Only what they name."""

from collections.abc import Iterator, Sequence
from typing import assert_never

from broadgauge.manifests.job import PodJob
from broadgauge.manifests.network_needs import network_prerequisites
from broadgauge.specs.kubernetes.pod_prepare import PodPrepare
from broadgauge.specs.kubernetes.settings import JobKind, Kubernetes


def prerequisites(jobs: Sequence[PodJob]) -> tuple[str, ...]:
    """Each in words, the most basic first; all jobs are of one experiment."""
    return (
        *_nodes(jobs),
        *_operators(jobs[0].kind),
        *network_prerequisites(jobs),
        *_named(jobs[0].settings, jobs),
    )


def _nodes(jobs: Sequence[PodJob]) -> Iterator[str]:
    most = max(jobs, key=lambda job: (job.num_gpus, job.num_pods))
    nodes = f"{most.num_pods} node{'s' * (most.num_pods > 1)}"
    if most.gpus_per_pod:
        resource = most.settings.gpu_resource
        yield f"{nodes} with {most.gpus_per_pod} free {resource} each (a device plugin offers it)"
    else:
        yield nodes
    if most.settings.node_selector:
        labels = (f"{key}={value}" for key, value in most.settings.node_selector.items())
        yield f"nodes labelled {', '.join(labels)}"


def _operators(kind: JobKind) -> Iterator[str]:
    match kind:
        case "job":
            return
        case "pytorchjob":
            yield "Kubeflow's training operator (v1), which has the kind PyTorchJob"
        case "trainjob":
            yield "Kubeflow Trainer (v2) with JobSet, which has the kinds TrainJob, TrainingRuntime"
        case _:
            assert_never(kind)


def _secrets(settings: Kubernetes, jobs: Sequence[PodJob]) -> Iterator[str]:
    for name in settings.image_pull_secrets:
        yield f"Secret {name}, for the image's registry"
    for name, ref in settings.secrets.items():
        if any(job.preparation is not None or name in job.secrets for job in jobs):
            yield f"Secret {ref.secret} with the key {ref.key} (variable {name})"


def _named(settings: Kubernetes, jobs: Sequence[PodJob]) -> Iterator[str]:
    if settings.namespace is not None:
        yield f"namespace {settings.namespace}"
    yield f"image {settings.image}, which the nodes can pull"
    yield from _secrets(settings, jobs)
    for volume in dict.fromkeys(each for job in jobs for each in job.volumes):
        if volume.config_map is not None:
            yield f"ConfigMap {volume.config_map} (mounted at {volume.path})"
        elif volume.size_bytes is None:
            yield f"PersistentVolumeClaim {volume.claim_name} (mounted at {volume.path})"
        else:
            kind = volume.storage_class or "the default"
            yield f"StorageClass {kind}, which gives {volume.access} (volume {volume.name})"
    if settings.prepare is not None and any(job.preparation is not None for job in jobs):
        yield from _sources(settings.prepare)
    if settings.service_account is not None:
        yield f"ServiceAccount {settings.service_account}"
    if settings.priority_class is not None:
        yield f"PriorityClass {settings.priority_class}"
    if settings.runtime_class is not None:
        yield f"RuntimeClass {settings.runtime_class}"
    if settings.queue is not None:
        yield f"Kueue with the LocalQueue {settings.queue.kueue}"


def _sources(prepare: PodPrepare) -> Iterator[str]:
    """What the pod that fetches must reach."""
    fetched = [each for each in (prepare.model, prepare.dataset) if each is not None]
    of_the_hub = [each.source for each in fetched if each.is_of_the_hub]
    if of_the_hub:
        endpoint = prepare.environment.get("HF_ENDPOINT", "https://huggingface.co")
        yield f"a way from a pod to {endpoint} ({', '.join(of_the_hub)})"
    for each in fetched:
        if not each.is_of_the_hub:
            is_url = each.source.startswith(("http", "oci"))
            yield f"{'a way from a pod to ' if is_url else 'in its pod: '}{each.source}"
