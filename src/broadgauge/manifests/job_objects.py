"""Which objects are a job of a kind? What its pods run is said by whoever makes it."""

from collections.abc import Callable

from broadgauge.manifests.indexed_job import indexed_job
from broadgauge.manifests.job import JobPods
from broadgauge.manifests.pod_template import ContentsOf
from broadgauge.manifests.pytorch_job import pytorch_job
from broadgauge.manifests.train_job import train_job
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.specs.kubernetes.settings import JobKind

_OBJECTS: dict[JobKind, Callable[[JobPods, ContentsOf], tuple[Manifest, ...]]] = {
    "job": indexed_job,
    "pytorchjob": pytorch_job,
    "trainjob": train_job,
}


def job_objects(job: JobPods, contents_of: ContentsOf) -> tuple[Manifest, ...]:
    """In the order to apply: the job is the last."""
    return _OBJECTS[job.kind](job, contents_of)
