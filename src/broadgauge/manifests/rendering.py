"""Which files are these jobs, in the order to apply, and what is to be known of them?"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from broadgauge.manifests.attachments import (
    address_map_file,
    definitions_file,
    topology_file,
)
from broadgauge.manifests.case_container import case_contents
from broadgauge.manifests.claims import claims_file
from broadgauge.manifests.config_maps import case_file, files_file, program_file
from broadgauge.manifests.definitions import Interface
from broadgauge.manifests.files import ManifestFile
from broadgauge.manifests.job import PodJob
from broadgauge.manifests.job_objects import job_objects
from broadgauge.manifests.kustomization import kustomizations
from broadgauge.manifests.notes import notes_on
from broadgauge.manifests.prepare import prepare_file
from broadgauge.manifests.prerequisites import prerequisites
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.specs.kubernetes.settings import JobKind

MOST_ANNOTATION_BYTES = 262_144
"""`kubectl apply` keeps an object's last form in an annotation of it. Source: Kubernetes,
apimachinery, api/validation, TotalAnnotationSizeLimitB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """Files in the order to apply, and what a reader should know of them."""

    files: tuple[ManifestFile, ...]
    kustomizations: tuple[ManifestFile, ...]
    prerequisites: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def objects(self) -> tuple[Manifest, ...]:
        """All of them, in that order; Kustomize's own files are no objects of a cluster."""
        return tuple(each for file in self.files for each in file.objects)

    @property
    def counts(self) -> dict[str, int]:
        """Objects by kind, in the order in which they come first."""
        return dict(Counter(each["kind"] for each in self.objects))


def render_jobs(jobs: Sequence[PodJob], definitions: Sequence[Interface] = ()) -> Rendered:
    """What outlives the jobs, then each job's own. `definitions`: those of all jobs' networks."""
    own = (
        file
        for job in jobs
        for file in (program_file(job), case_file(job), files_file(job), _job_file(job))
    )
    address_map = next((job.address_map for job in jobs if job.address_map is not None), None)
    fed = next((job for job in jobs if job.preparation is not None), None)
    topology = next((job.topology for job in jobs if job.topology is not None), None)
    shared = (
        definitions_file(jobs[0], definitions),
        address_map_file(jobs[0], address_map),
        topology_file(jobs[0], topology),
        claims_file(jobs[0]),
        prepare_file(fed) if fed is not None else None,
    )
    files = tuple(file for file in (*shared, *own) if file is not None)
    return Rendered(
        files=files,
        kustomizations=tuple(kustomizations(files)),
        prerequisites=prerequisites(jobs),
        notes=(*notes_on(jobs), *_notes_on_size(files)),
    )


_WORDS: dict[JobKind, str] = {
    "job": "A Job of Kubernetes itself, indexed; where there are several pods a headless Service "
    "gives them names",
    "pytorchjob": "A PyTorchJob of Kubeflow's training operator (v1)",
    "trainjob": "A TrainJob of Kubeflow Trainer, with a runtime of its own, which has the pods",
}


def _job_file(job: PodJob) -> ManifestFile:
    pods = "1 pod" if job.num_pods == 1 else f"{job.num_pods} pods, one a node,"
    launches = "once" if job.launches == 1 else f"{job.launches} times"
    contents = case_contents(job)
    return ManifestFile(
        path=f"40-job/{job.word}/40-job.yaml",
        comment=f"The job of the case {job.case.label}: {pods} of {job.ranks_per_pod} "
        f"rank{'s' * (job.ranks_per_pod > 1)}, started {launches}. {_WORDS[job.kind]}.\n"
        "Pods and ranks from `cluster.shapes`, launches from `launches`, the words behind `--` "
        "from `workloads`, variables from `environment` and `networks[].kubernetes`, all else from "
        f"`kubernetes`.{_memory_words(job)}",
        objects=job_objects(job, lambda _: contents),
    )


def _memory_words(job: PodJob) -> str:
    if job.settings.memory_bytes is not None or job.memory_need.total_bytes is None:
        return ""
    return f"\nMemory of each pod, by the memory model: {job.memory_need.words}."


def _notes_on_size(files: Sequence[ManifestFile]) -> tuple[str, ...]:
    large = [
        each["metadata"]["name"]
        for file in files
        for each in file.objects
        if len(json.dumps(each)) > MOST_ANNOTATION_BYTES
    ]
    if not large:
        return ()
    return (
        f"{', '.join(large)}: larger than the annotation that `kubectl apply` keeps, so that "
        "`kubectl apply --server-side -k` is needed",
    )
