"""What must a cluster have before the files are applied? Only what they name."""

from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from broadgauge.manifests.job import PodJob
from broadgauge.manifests.network_needs import network_prerequisites
from broadgauge.specs.kubernetes import JobKind, Kubernetes
from broadgauge.specs.pod_volumes import Volume


def prerequisites(jobs: Sequence[PodJob]) -> tuple[str, ...]:
    """Each in words, the most basic first; all jobs are of one experiment."""
    return (
        *_nodes(jobs),
        *_operators(jobs[0].kind),
        *network_prerequisites(jobs),
        *_named(jobs[0].settings, dict.fromkeys(each for job in jobs for each in job.volumes)),
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


def _named(settings: Kubernetes, volumes: Iterable[Volume]) -> Iterator[str]:
    if settings.namespace is not None:
        yield f"namespace {settings.namespace}"
    yield f"image {settings.image}, which the nodes can pull"
    for name in settings.image_pull_secrets:
        yield f"Secret {name}, for the image's registry"
    for name, ref in settings.secrets.items():
        yield f"Secret {ref.secret} with the key {ref.key} (variable {name})"
    for volume in volumes:
        if volume.config_map is not None:
            yield f"ConfigMap {volume.config_map} (mounted at {volume.path})"
        elif volume.size_bytes is None:
            yield f"PersistentVolumeClaim {volume.claim_name} (mounted at {volume.path})"
        else:
            kind = volume.storage_class or "the default"
            yield f"StorageClass {kind}, which gives {volume.access} (volume {volume.name})"
    if settings.service_account is not None:
        yield f"ServiceAccount {settings.service_account}"
    if settings.priority_class is not None:
        yield f"PriorityClass {settings.priority_class}"
    if settings.runtime_class is not None:
        yield f"RuntimeClass {settings.runtime_class}"
    if settings.queue is not None:
        yield f"Kueue with the LocalQueue {settings.queue.kueue}"
