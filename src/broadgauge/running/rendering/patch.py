"""From a manifest of the user's and a network to the overlay that puts one on the other."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from broadgauge.manifests.files import to_yaml
from broadgauge.manifests.patch_needs import notes_on
from broadgauge.manifests.patching import KINDS, JobPatch, overlay_files, patch_of
from broadgauge.running.rendering.wanted_network import WantedNetwork, added_network
from broadgauge.specs.errors import InputError
from broadgauge.specs.text.yaml_source import MAX_TEXT_BYTES, parse_yaml
from broadgauge.wording.file_kinds import special_kind

_NEXT_DOCUMENT = re.compile(r"^---(?=\s|$)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    """Files by path, what they change, and what they rely on."""

    texts: dict[str, str]
    patches: tuple[JobPatch, ...]
    needs: tuple[str, ...]
    """What the cluster must have, in words."""
    notes: tuple[str, ...]
    """What should be known before it is applied."""


def overlay(manifest: Path, wanted: WantedNetwork) -> Overlay:
    """Raises InputError and ExperimentError."""
    added = added_network(wanted)
    if manifest.name.lower().startswith("kustomization"):
        raise InputError(
            f"`{manifest}` is Kustomize's own file, not a job's",
            hint="the file that it names under `resources`",
        )
    text = _read(manifest)
    found = (patch_of(each, added) for each in _documents(text, manifest))
    patches = [each for each in found if each is not None]
    if not patches:
        raise InputError(
            f"`{manifest}`: no {', '.join(KINDS)} is in it, so that there is nothing to patch",
            hint="a manifest of the job itself, as `kubectl get -o yaml` or its author has it",
        )
    _check_alone(patches)
    files = overlay_files(manifest.name, folder_word(wanted.name), patches)
    return Overlay(
        texts={f"base/{manifest.name}": text, **{file.path: to_yaml(file) for file in files}},
        patches=tuple(patches),
        needs=added.needs,
        notes=tuple(notes_on(added, patches)),
    )


def folder_word(network: str) -> str:
    """A network's name as the name of a folder: `space/name` is one word there."""
    return network.replace("/", "-")


def _check_alone(patches: Sequence[JobPatch]) -> None:
    """Raises InputError for two jobs of one name, of which Kustomize would patch both twice."""
    known = [(patch.kind, patch.name) for patch in patches]
    for place, each in enumerate(known):
        if each in known[:place]:
            raise InputError(f"two are named {' '.join(each)}", hint="one of them a file")


def _documents(text: str, path: Path) -> Iterator[Any]:
    """Raises ExperimentError with the place of what can't be read."""
    starts = [0, *(match.start() for match in _NEXT_DOCUMENT.finditer(text)), len(text)]
    for start, end in pairwise(starts):
        part = text[start:end]
        if _has_content(part):
            yield parse_yaml("\n" * text.count("\n", 0, start) + part, str(path)).data


def _has_content(part: str) -> bool:
    lines = (line.strip() for line in part.removeprefix("---").splitlines())
    return any(line and not line.startswith(("#", "%", "...")) for line in lines)


def _read(path: Path) -> str:
    """Raises InputError."""
    try:
        kind = special_kind(path.stat().st_mode)
        if kind is not None:
            raise InputError(f"`{path}`: {kind}, not a manifest")
        with path.open(encoding="utf-8", newline="") as file:
            text = file.read(MAX_TEXT_BYTES + 1)
    except UnicodeDecodeError as error:
        message = f"`{path}`: not a text file (byte {error.start} is no UTF-8)"
        raise InputError(message, hint="a manifest is a YAML file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"`{path}`: can't be read: {reason}") from None
    return text
