"""Where on a volume does a job keep what it measures?"""

from broadgauge.manifests.prepared import FOLDER
from broadgauge.manifests.request import JobRequest
from broadgauge.specs.kubernetes import Volume


def results_folder(request: JobRequest) -> str | None:
    """Of this job alone; None: its first pod's log is all."""
    volume = results_volume(request)
    return None if volume is None else f"{volume.mount.rstrip('/')}/{FOLDER}/{request.name}"


def results_volume(request: JobRequest) -> Volume | None:
    """That the experiment's `kubernetes.results` names."""
    settings = request.settings
    return next((each for each in settings.volumes if each.name == settings.results), None)
