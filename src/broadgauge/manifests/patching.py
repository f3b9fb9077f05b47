"""How is a network given to a job that somebody else has written? By an overlay of Kustomize.

The job itself stays as it is, in a folder that is the overlay's base; a patch (RFC 6902) adds the
network's annotation to the pods, and its resources and variables to the containers that train, and
touches nothing else. Patches name places by
their number, since Kustomize would replace a list of a kind that it has no schema of.
Source: Kustomize, "kustomization", `patches`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import dedent
from typing import Any

from broadgauge.manifests.files import ManifestFile
from broadgauge.manifests.job_parts import containers_that_train, pod_templates
from broadgauge.manifests.kustomization import KUSTOMIZATION
from broadgauge.manifests.patch_operations import (
    annotate,
    ask_for,
    names_adapters,
    set_variables,
)
from broadgauge.manifests.yaml_text import Manifest, yaml_text
from broadgauge.messages.vocabulary import Transport
from broadgauge.specs.errors import InputError

KINDS = {"Job": "batch", "PyTorchJob": "kubeflow.org", "TrainJob": "trainer.kubeflow.org"}
"""By kind its API group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedNetwork:
    """What a network asks of a job."""

    variables: Mapping[str, str]
    """Of the containers that train."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Of the pods: what is attached to them."""
    resources: Mapping[str, str] = field(default_factory=dict)
    """Quantities of extended ones and of huge pages, of each container that trains."""
    transport: Transport | None = None
    """What it is meant to send by; None: whatever NCCL chooses."""
    is_memlock_raised: bool = False
    """The experiment says that its nodes let processes lock memory."""
    needs: tuple[str, ...] = ()
    """What the cluster must have, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPatch:
    """What is changed of one job."""

    kind: str
    name: str
    namespace: str | None
    operations: tuple[Manifest, ...]
    changes: tuple[str, ...]
    """In words, one a variable and container."""
    names_adapters: bool
    """Do all containers that train say by which adapters NCCL sends, with this network?"""


def patch_of(document: Any, added: AddedNetwork) -> JobPatch | None:
    """None: it is no job of these kinds, and stays as it is. Raises InputError."""
    kind = document.get("kind") if isinstance(document, dict) else None
    if not isinstance(kind, str) or kind not in (*KINDS, "List"):
        return None
    if kind == "List":
        raise InputError(
            "a List of objects, in which Kustomize finds none by its name",
            hint="one object a document, with `---` between them",
        )
    group = str(document.get("apiVersion", "")).partition("/")[0]
    if group != KINDS[kind]:
        raise InputError(
            f"{kind}: apiVersion `{document.get('apiVersion')}` is not of `{KINDS[kind]}`",
            hint="a Job of batch/v1, a PyTorchJob of kubeflow.org/v1, or a TrainJob",
        )
    about = document.get("metadata")
    name = about.get("name") if isinstance(about, dict) else None
    if not isinstance(name, str) or not name:
        raise InputError(
            f"{kind}: `metadata.name` is missing, and Kustomize finds what it patches by it",
            hint="give it a `name` in the place of `generateName`",
        )
    operations: list[Manifest] = []
    changes: list[str] = []
    found = list(containers_that_train(kind, name, document))
    if not found:
        raise InputError(f"{kind} {name}: it has no container that could train")
    if kind == "TrainJob" and (added.annotations or added.resources):
        raise InputError(
            f"TrainJob {name}: its pods are its runtime's, which attaches networks to them",
            hint="`broadgauge render --job trainjob` writes a TrainingRuntime beside the job",
        )
    for place, what, template in pod_templates(kind, document.get("spec")):
        more, words = annotate(place, template, added.annotations, f"{kind} {name}")
        operations += more
        changes += [f"{kind} {name}, {what}pods: {each}" for each in words]
    for place, what, container in found:
        for more, words in (
            ask_for(place, container, added.resources, f"{kind} {name}, {what}"),
            set_variables(place, container.get("env"), added.variables),
        ):
            operations += more
            changes += [f"{kind} {name}, {what}: {each}" for each in words]
    space = about.get("namespace") if isinstance(about, dict) else None
    return JobPatch(
        kind=kind,
        name=name,
        namespace=space if isinstance(space, str) else None,
        operations=tuple(operations),
        changes=tuple(changes),
        names_adapters=all(names_adapters(each, added.variables) for *_, each in found),
    )


def overlay_files(base: str, network: str, patches: Sequence[JobPatch]) -> list[ManifestFile]:
    """All but the job itself, which stands in `base/` as it is. `base`: its file's name."""
    written = [
        {
            "target": _target(patch),
            "patch": dedent(yaml_text(list(patch.operations))),
        }
        for patch in patches
        if patch.operations
    ]
    on_network = {"resources": ["../../base"], **({"patches": written} if written else {})}
    of_base = "Your manifest as it is, for the overlays beside this folder."
    folder = f"overlays/{network}"
    of_network = (
        f"`kubectl apply -k {folder}` applies your manifest on the network {network}: its pods' "
        "annotation, and resources and variables of the containers that train are set, by RFC "
        "6902, and nothing else is touched."
    )
    return [
        _kustomization("base", of_base, {"resources": [base]}),
        _kustomization(folder, of_network, on_network),
    ]


def _target(patch: JobPatch) -> Manifest:
    """Kustomize takes names for regular expressions. Source: Kustomize, "patches", `target`."""
    found = {"group": KINDS[patch.kind], "kind": patch.kind, "name": _literally(patch.name)}
    if patch.namespace is not None:
        found["namespace"] = _literally(patch.namespace)
    return found


def _literally(name: str) -> str:
    return name.replace(".", "[.]")


def _kustomization(folder: str, comment: str, content: Manifest) -> ManifestFile:
    head = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    return ManifestFile(
        path=f"{folder}/{KUSTOMIZATION}", comment=comment, objects=({**head, **content},)
    )
