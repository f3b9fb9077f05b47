"""How is a network given to a job that somebody else has written? By an overlay of Kustomize.

The job itself stays as it is, in a folder that is the overlay's base; a patch (RFC 6902) adds the
network's variables to the containers that train, and touches nothing else. Patches name places by
their number, since Kustomize would replace a list of a kind that it has no schema of.
Source: Kustomize, "kustomization", `patches`; RFC 6901 (the places' form).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import dedent
from typing import Any

from broadgauge.manifests.files import ManifestFile
from broadgauge.manifests.kustomization import KUSTOMIZATION
from broadgauge.manifests.yaml_text import Manifest, yaml_text
from broadgauge.specs.errors import InputError
from broadgauge.specs.variables import holds_secret

KINDS = {"Job": "batch", "PyTorchJob": "kubeflow.org", "TrainJob": "trainer.kubeflow.org"}
"""By kind its API group."""
_LONGEST_SHOWN = 40
"""Characters of a library's setting."""
_GPU = re.compile(r"(^|[./-])gpu($|[./-])|^nvidia\.com/|^amd\.com/|^habana\.ai/|^gpu\.intel\.com/")


_Part = tuple[str, str, dict[str, Any]]
"""Of a manifest: its place as a patch names it, the same in words, and what stands there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPatch:
    """What is changed of one job."""

    kind: str
    name: str
    namespace: str | None
    operations: tuple[Manifest, ...]
    changes: tuple[str, ...]
    """In words, one a variable and container."""


def patch_of(document: Any, variables: Mapping[str, str]) -> JobPatch | None:
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
    found = list(_containers(kind, name, document))
    if not found:
        raise InputError(f"{kind} {name}: it has no container that could train")
    for place, what, container in found:
        more, words = _operations(place, container.get("env"), variables)
        operations += more
        changes += [f"{kind} {name}, {what}: {each}" for each in words]
    space = about.get("namespace") if isinstance(about, dict) else None
    return JobPatch(
        kind=kind,
        name=name,
        namespace=space if isinstance(space, str) else None,
        operations=tuple(operations),
        changes=tuple(changes),
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
        f"`kubectl apply -k {folder}` applies your manifest on the network {network}: variables "
        "of the containers that train are set, by RFC 6902, and nothing else is touched."
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


def _containers(kind: str, name: str, document: Manifest) -> Iterator[_Part]:
    """Those that train. Raises InputError where none can be told."""
    spec = document.get("spec")
    if kind == "TrainJob":
        trainer = spec.get("trainer") if isinstance(spec, dict) else None
        if not isinstance(trainer, dict):
            raise InputError(
                f"TrainJob {name}: it has no `spec.trainer`, whose variables would be set",
                hint="`trainer: {numNodes: …}`",
            )
        yield "/spec/trainer", "trainer", trainer
        return
    for place, what, pod in _pods(kind, spec):
        if pod.get("hostNetwork") is True:
            raise InputError(
                f"{kind} {name}: its pods are on their nodes' network (`hostNetwork: true`), which "
                "is not the pod network",
                hint="leave `hostNetwork` out",
            )
        containers = pod.get("containers")
        numbered = [
            (number, each)
            for number, each in enumerate(containers if isinstance(containers, list) else [])
            if isinstance(each, dict)
        ]
        training = [each for each in numbered if _asks_for_gpus(each[1])] or [
            each for each in numbered if len(numbered) == 1 or each[1].get("name") == "pytorch"
        ]
        if not training:
            raise InputError(
                f"{kind} {name}: which of its {len(numbered)} containers trains? None asks for "
                "GPUs, and none is named `pytorch`",
                hint="ask for GPUs under `resources.limits` of the one that does",
            )
        for number, each in training:
            words = f"{what}container {each.get('name', number)}"
            yield f"{place}/containers/{number}", words, each


def _pods(kind: str, spec: Any) -> Iterator[_Part]:
    """Specifications of pods; empty where it has none."""
    if not isinstance(spec, dict):
        return
    if kind == "Job":
        templates = [("/spec/template", "", spec.get("template"))]
    else:
        replicas = spec.get("pytorchReplicaSpecs")
        path = "/spec/pytorchReplicaSpecs"
        templates = [
            (f"{path}/{_escaped(str(role))}/template", f"{role}, ", each.get("template"))
            for role, each in (replicas.items() if isinstance(replicas, dict) else ())
            if isinstance(each, dict)
        ]
    for place, what, template in templates:
        pod = template.get("spec") if isinstance(template, dict) else None
        if isinstance(pod, dict):
            yield f"{place}/spec", what, pod


def _escaped(word: str) -> str:
    """Source: RFC 6901, 3."""
    return word.replace("~", "~0").replace("/", "~1")


def _asks_for_gpus(container: Mapping[str, Any]) -> bool:
    asked = container.get("resources")
    limits = asked.get("limits") if isinstance(asked, dict) else None
    return isinstance(limits, dict) and any(_GPU.search(str(name)) for name in limits)


def _operations(
    place: str, env: Any, variables: Mapping[str, str]
) -> tuple[list[Manifest], list[str]]:
    """Of one container, and the same in words."""
    # `$(NAME)` would be replaced by Kubernetes, and `$$` is a `$`.
    plain = {name: value.replace("$", "$$") for name, value in variables.items()}
    wanted = {name: {"name": name, "value": value} for name, value in plain.items()}
    if not isinstance(env, list) or not env:
        whole = {"op": "add", "path": f"{place}/env", "value": list(wanted.values())}
        return [whole], [f"adds {', '.join(wanted)}"]
    there = {
        str(each.get("name")): (number, each)
        for number, each in enumerate(env)
        if isinstance(each, dict)
    }
    added = [name for name in wanted if name not in there]
    operations = [{"op": "add", "path": f"{place}/env/-", "value": wanted[name]} for name in added]
    words = [f"adds {', '.join(added)}"] if added else []
    for name in (each for each in wanted if each in there):
        number, old = there[name]
        if old != wanted[name]:
            path = f"{place}/env/{number}"
            operations.append({"op": "replace", "path": path, "value": wanted[name]})
            words.append(f"sets {name} to `{variables[name]}`, which was {_shown(name, old)}")
    return operations, words


def _shown(name: str, entry: Mapping[str, Any]) -> str:
    """Of a library's setting what it was; of anything else, which may be a secret, only that."""
    if "valueFrom" in entry:
        return "a reference"
    value = str(entry.get("value", ""))
    is_setting = name.startswith(("NCCL_", "GLOO_")) and len(value) <= _LONGEST_SHOWN
    return f"`{value}`" if is_setting and not holds_secret(name, value) else "another value"
