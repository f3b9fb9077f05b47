"""Which Job reads what a job has kept on a volume, when its pods are gone?"""

from broadgauge.manifests import environment, labels
from broadgauge.manifests.config_maps import PROGRAM_KEY, config_map
from broadgauge.manifests.kept_results import results_folder, results_volume
from broadgauge.manifests.plain_job import PlainContainer, plain_job
from broadgauge.manifests.request import JobRequest
from broadgauge.manifests.volumes import PROGRAM, SCRATCH
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.specs.kubernetes import Volume

CONTAINER = "results"


def reader_objects(request: JobRequest, after: int) -> tuple[Manifest, ...]:
    """A Job that tells the events after this one in its log, and the program that it runs."""
    volume, folder, name = (
        results_volume(request),
        results_folder(request),
        reader_name(request, after),
    )
    assert volume is not None, "asked of jobs that keep their results"
    container = PlainContainer(
        name=CONTAINER,
        image=request.settings.image,
        command=[
            request.settings.python,
            f"{PROGRAM}/{PROGRAM_KEY}",
            "kept-events",
            str(folder),
            str(after),
        ],
        environment=environment.of_any_user(),
        volumes=[
            ("broadgauge-program", PROGRAM, _config_map(labels.program_name(name))),
            ("broadgauge-scratch", SCRATCH, {"emptyDir": {}}),
            ("volume-1", volume.mount, _claim(volume)),
        ],
    )
    job = plain_job(request, name, container, backoffLimit=0)
    # Its own: the run's goes when its job does, perhaps just now.
    data = {PROGRAM_KEY: request.program}
    program = config_map(request, labels.program_name(name), data, "Broadgauge's own program")
    return program, job


def reader_name(request: JobRequest, after: int) -> str:
    """Another for each place to begin at."""
    return f"{request.name}-results-{after + 1}"


def _config_map(name: str) -> Manifest:
    return {"configMap": {"name": name}}


def _claim(volume: Volume) -> Manifest:
    return {"persistentVolumeClaim": {"claimName": volume.claim_name}}
