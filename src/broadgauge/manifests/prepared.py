"""Where on a volume will model and data set be? Named by what they are and by a checksum of what
was asked for, so that every job of the same finds the same."""

import hashlib
import json
import re

from broadgauge.manifests.request import JobRequest
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.specs.kubernetes import OURS, Prepare, Volume

FOLDER = "broadgauge"
"""On the volume; the user's own files lie beside it."""
VARIABLES = {"model": "BROADGAUGE_MODEL", "dataset": "BROADGAUGE_DATASET"}
_KEY_CHARACTERS = 16
_SHOWN_CHARACTERS = 40


def prepared_paths(request: JobRequest) -> dict[str, str]:
    """Variables that tell ranks where they are; empty: nothing is fetched."""
    prepare = request.settings.prepare
    if prepare is None:
        return {}
    root = _root(request, prepare)
    found = {VARIABLES[item["kind"]]: f"{root}/{item['name']}" for item in _items(prepare)}
    if prepare.command is not None:
        found["BROADGAUGE_PREPARED"] = f"{root}/{_command_name(request, prepare)}"
    return found


def volume_of(request: JobRequest, prepare: Prepare) -> Volume:
    """That it fills."""
    return next(each for each in request.settings.volumes if each.name == prepare.volume)


def asked(request: JobRequest, prepare: Prepare) -> Manifest:
    """What the script reads."""
    found: Manifest = {"folder": _root(request, prepare), "items": _items(prepare)}
    if prepare.command is not None:
        files = f"{OURS}/files" if request.files else volume_of(request, prepare).mount
        found["command"] = {
            "name": _command_name(request, prepare),
            "words": list(prepare.command),
            "working_folder": request.settings.working_folder or files,
        }
    return found


def _root(request: JobRequest, prepare: Prepare) -> str:
    return f"{volume_of(request, prepare).mount.rstrip('/')}/{FOLDER}"


def _items(prepare: Prepare) -> list[Manifest]:
    found: list[Manifest] = []
    if prepare.model is not None:
        about = {"source": prepare.model, "revision": prepare.model_revision}
        found.append({"kind": "model", **about})
    if prepare.dataset is not None:
        found.append(
            {"kind": "dataset", "source": prepare.dataset, "config": prepare.dataset_config}
        )
    return [{"name": _name(item), **item} for item in found]


def _name(item: Manifest) -> str:
    """`model-granite-3.1-8b-<key>`: of a hub id or a URL its last part."""
    last = item["source"].rstrip("/").rpartition("/")[2].partition("?")[0]
    word = re.sub(r"[^A-Za-z0-9.]+", "-", last).strip("-.")[:_SHOWN_CHARACTERS]
    return "-".join(part for part in (item["kind"], word, _key(item)) if part)


def _key(content: object) -> str:
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_KEY_CHARACTERS]


def _command_name(request: JobRequest, prepare: Prepare) -> str:
    """Another script of the same name is another command."""
    files = {name: hashlib.sha256(data).hexdigest() for name, data in request.files.items()}
    return f"command-{_key([prepare.command, _items(prepare), files])}"
