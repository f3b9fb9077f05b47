"""Which Job fetches model and data set onto a volume, before any training?"""

import json
from importlib import resources

from broadgauge.manifests import environment
from broadgauge.manifests.config_maps import config_map, file_keys
from broadgauge.manifests.files import ManifestFile
from broadgauge.manifests.plain_job import PlainContainer, plain_job
from broadgauge.manifests.prepared import asked, volume_of
from broadgauge.manifests.request import JobRequest
from broadgauge.manifests.volumes import SCRATCH
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.specs.kubernetes import OURS, Prepare

SCRIPT = "fetch_to_volume.py"
_MODULES = (SCRIPT, "fetch_urls.py")
_TRIES = 3
_LASTING = 2
"""The script's exit code where another try does not help."""


def prepare_file(request: JobRequest) -> ManifestFile | None:
    """None: all is there already."""
    prepare = request.settings.prepare
    if prepare is None:
        return None
    return ManifestFile(
        path="35-prepare/prepare.yaml",
        comment="Fetches model and data set onto the volume, once: what is there already, by the\n"
        "checksum of what is asked for, is left alone. From the experiment's `kubernetes.prepare`.",
        objects=(*_config_maps(request, prepare), _job(request, prepare)),
    )


def prepare_name(request: JobRequest) -> str:
    """Of the Job and its ConfigMap."""
    return f"{request.name}-prepare"


def _config_maps(request: JobRequest, prepare: Prepare) -> list[Manifest]:
    """The script, and the files that a command of the user's may need."""
    ours = resources.files("broadgauge.manifests")
    script = {name: ours.joinpath(name).read_bytes() for name in _MODULES}
    found = [config_map(request, prepare_name(request), script, "the script")]
    if prepare.command is not None and request.files:
        keys = file_keys(request.files)
        data = {keys[path]: content for path, content in request.files.items()}
        found.append(config_map(request, _files_name(request), data, "your files"))
    return found


def _files_name(request: JobRequest) -> str:
    return f"{prepare_name(request)}-files"


def _job(request: JobRequest, prepare: Prepare) -> Manifest:
    lasting = {"containerName": "prepare", "operator": "In", "values": [_LASTING]}
    container = PlainContainer(
        name="prepare",
        image=prepare.image or request.settings.image,
        command=[request.settings.python, f"{OURS}/prepare/{SCRIPT}"],
        environment=[
            environment.plain("BROADGAUGE_PREPARE", json.dumps(asked(request, prepare))),
            *environment.of_any_user(),
            *environment.secrets(request, with_token=False),
        ],
        volumes=_volumes(request, prepare),
        cpus=prepare.cpus,
        memory_bytes=prepare.memory_bytes,
    )
    return plain_job(
        request,
        prepare_name(request),
        container,
        backoffLimit=_TRIES,
        podFailurePolicy={"rules": [{"action": "FailJob", "onExitCodes": lasting}]},
    )


def _volumes(request: JobRequest, prepare: Prepare) -> list[tuple[str, str, Manifest]]:
    kept = volume_of(request, prepare)
    script = {"configMap": {"name": prepare_name(request)}}
    found: list[tuple[str, str, Manifest]] = [
        ("broadgauge-prepare", f"{OURS}/prepare", script),
        ("broadgauge-scratch", SCRATCH, {"emptyDir": {}}),
        ("volume-1", kept.mount, {"persistentVolumeClaim": {"claimName": kept.claim_name}}),
    ]
    if prepare.command is not None and request.files:
        keys = file_keys(request.files)
        items = [{"key": key, "path": path} for path, key in keys.items()]
        own = {"configMap": {"name": _files_name(request), "items": items}}
        found.append(("broadgauge-files", f"{OURS}/files", own))
    return found
