"""Which files are a job, in the order to apply?"""

from textwrap import fill
from typing import assert_never

from broadgauge.manifests import config_maps
from broadgauge.manifests.attachments import attachments_file
from broadgauge.manifests.claims import claims_file
from broadgauge.manifests.files import ManifestFile, Rendered
from broadgauge.manifests.indexed_job import indexed_job
from broadgauge.manifests.job_set import job_set
from broadgauge.manifests.labels import job_word
from broadgauge.manifests.notes import locked_memory, notes_on
from broadgauge.manifests.pytorch_job import pytorch_job
from broadgauge.manifests.queues import pod_groups
from broadgauge.manifests.request import LONGEST_NAME, JobRequest
from broadgauge.manifests.train_job import train_job
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.specs.errors import InputError

COMMENT_CHARACTERS = 98
JOB_WORDS = {
    "pytorchjob": "PyTorchJob (Kubeflow training-operator, v1)",
    "trainjob": "TrainJob (Kubeflow trainer, v2)",
    "jobset": "JobSet",
    "job": "Job of Kubernetes itself, indexed, with a headless Service",
}


def render_job(request: JobRequest) -> Rendered:
    """Networks, claims, then the job's own: all but the Secret `<name>-secrets`, whose values are
    nobody's to write into a file.

    Raises InputError where the cluster would refuse it, as far as that can be known.
    """
    if request.name != job_word(request.name, LONGEST_NAME):
        raise InputError(
            f"`{request.name}` is no name of a job: a DNS label of at most {LONGEST_NAME} "
            "characters that begins with a letter"
        )
    shared = (attachments_file(request), claims_file(request))
    files = (*(each for each in shared if each is not None), *job_files(request))
    return Rendered(files=files, notes=notes_on(request))


def job_files(request: JobRequest) -> tuple[ManifestFile, ...]:
    """Of this job alone; paths are relative to its folder. Raises InputError."""
    found = (
        config_maps.program_file(request),
        config_maps.orders_file(request),
        config_maps.files_file(request),
        config_maps.addresses_file(request),
        _job_file(request),
    )
    return tuple(each for each in found if each is not None)


def _job_file(request: JobRequest) -> ManifestFile:
    pods = "pod" if request.num_pods == 1 else "pods"
    comment = (
        f"The job: {request.num_pods} {pods}, one a node. {JOB_WORDS[request.kind]}.\n"
        "From the experiment's `cluster.shapes`, `kubernetes` and `networks[].kubernetes`.\n"
        "Each pod runs Broadgauge's agent, which starts the ranks; the first pod leads."
    )
    locked = locked_memory(request)
    if locked is not None:
        words = f"Locked memory: {locked}."
        comment += f"\n{fill(words, COMMENT_CHARACTERS, break_on_hyphens=False)}"
    objects = (*pod_groups(request), *_job_objects(request))
    return ManifestFile(path="40-job.yaml", comment=comment, objects=objects)


def _job_objects(request: JobRequest) -> tuple[Manifest, ...]:
    match request.kind:
        case "pytorchjob":
            return pytorch_job(request)
        case "trainjob":
            return train_job(request)
        case "jobset":
            return job_set(request)
        case "job":
            return indexed_job(request)
        case _:
            assert_never(request.kind)
