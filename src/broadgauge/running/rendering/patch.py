"""From a manifest of the user's and a network to the overlay that puts one on the other."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from broadgauge.catalog.profiled import with_profile
from broadgauge.manifests.attachments import networks_annotation
from broadgauge.manifests.fabric_parts import daemons
from broadgauge.manifests.files import to_yaml
from broadgauge.manifests.interfaces import Definitions, attach
from broadgauge.manifests.patching import (
    KINDS,
    AddedNetwork,
    JobPatch,
    overlay_files,
    patch_of,
)
from broadgauge.running.experiments import load
from broadgauge.running.rendering.pod_environment import network_variables
from broadgauge.specs.base import did_you_mean
from broadgauge.specs.errors import InputError
from broadgauge.specs.network import Network
from broadgauge.specs.pod_networks import POD_INTERFACE, PodNetwork
from broadgauge.specs.secret_names import url_secrets
from broadgauge.specs.token_forms import holds_token
from broadgauge.specs.yaml_source import MAX_TEXT_BYTES, parse_yaml
from broadgauge.wording.file_kinds import special_kind

POD_NETWORK = "pod"
"""Known without an experiment: the network that every pod has."""
_NEXT_DOCUMENT = re.compile(r"^---(?=\s|$)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    """Files by path, and what they change."""

    texts: dict[str, str]
    patches: tuple[JobPatch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedNetwork:
    """Which network a job is put on."""

    name: str
    """`pod`, a NetworkAttachmentDefinition, or a network of the experiment."""
    experiment: str | None = None
    """Whose network of this name is meant."""
    resource: str | None = None
    """By which the pods get the RDMA devices of a definition."""


def overlay(manifest: Path, wanted: WantedNetwork) -> Overlay:
    """Raises InputError and ExperimentError."""
    added = _added(wanted)
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


def _added(wanted: WantedNetwork) -> AddedNetwork:
    """What of a job is changed. Raises InputError."""
    if wanted.experiment is None:
        return _by_itself(wanted)
    if wanted.resource is not None:
        raise InputError(
            f"--resource {wanted.resource}: the experiment's network says its own",
            hint="`kubernetes.resources` of the network, or no --experiment",
        )
    networks = [
        each
        for each in load(wanted.experiment, ()).experiment.networks
        if isinstance(each, Network)
    ]
    named = next((each for each in networks if each.name == wanted.name), None)
    if named is None:
        hint = did_you_mean(wanted.name, [each.name for each in networks])
        raise InputError(
            f"--network: {wanted.experiment} has no network `{wanted.name}`", hint=hint
        )
    if named.kubernetes is None:
        raise InputError(
            f"networks.{wanted.name}: it does not say what is attached to pods",
            hint="`kubernetes: pod` is the cluster's own network",
        )
    if named.nics_per_node == "nodes":
        raise InputError(
            f"networks.{wanted.name}.nics_per_node: `nodes`, and a patch does not know how many",
            hint="a network with a number of NICs",
        )
    complete = with_profile(named.as_found_on("kubernetes")).on_nodes(1)
    return _attached(complete, _own(complete))


def _by_itself(wanted: WantedNetwork) -> AddedNetwork:
    """The pod network, or a definition that is in the cluster. Raises InputError."""
    if wanted.name == POD_NETWORK:
        if wanted.resource is not None:
            raise InputError(
                f"--resource {wanted.resource}: the pod network asks for none",
                hint="--network: the name of a NetworkAttachmentDefinition",
            )
        return AddedNetwork(
            variables=network_variables(PodNetwork(attachment="pod"), (POD_INTERFACE,))
        )
    face = {"attachment": "existing", "definitions": wanted.name, "transport": "tcp"}
    if wanted.resource is not None:
        face |= {"resources": wanted.resource, "transport": "roce"}
    try:
        network = Network.model_validate({"name": "named", "kubernetes": face})
    except ValidationError as error:
        why = error.errors()[0]
        raise InputError(
            f"--network {wanted.name}: {why['msg'].removeprefix('Value error, ')}",
            hint="`pod`, the name of a NetworkAttachmentDefinition (`space/name` of one in another "
            "namespace), or --experiment FILE and the name of one of its networks",
        ) from error
    return _attached(network.on_nodes(1), {})


def _attached(network: Network, own: dict[str, str]) -> AddedNetwork:
    """Raises InputError where an overlay can't have it."""
    face = network.kubernetes
    assert face is not None, network.name
    attachments = attach((network,), Definitions(network.name), ())
    for each in attachments.interfaces:
        if each.config is not None and each.definition.startswith(f"{network.name}-"):
            raise InputError(
                f"networks.{network.name}.kubernetes.definitions: an overlay names definitions "
                "that are in the cluster, and these have no names",
                hint="`definitions: …`, as `broadgauge render` or an administrator made them",
            )
    if daemons(attachments.fabrics):
        raise InputError(
            f"networks.{network.name}.kubernetes.profile: {attachments.fabrics[0].name} needs a "
            "container beside the ranks', which an overlay does not add",
            hint="`broadgauge render` writes the whole job",
        )
    annotation = networks_annotation(attachments.interfaces, None, 0)
    return AddedNetwork(
        variables=network_variables(face, attachments.names_of[network.name]) | own,
        annotations=annotation,
        resources=attachments.resources,
    )


def _own(network: Network) -> dict[str, str]:
    """What its entry sets for ranks. Raises InputError for a secret."""
    own: dict[str, str] = {}
    for key, value in network.environment.items():
        if not isinstance(value, str) or holds_token(value) or url_secrets(value):
            raise InputError(
                f"networks.{network.name}.environment.{key} is a secret, and an overlay would "
                "show it",
                hint="`valueFrom: {secretKeyRef: …}` in the manifest itself",
            )
        own[key] = value
    return own


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
