"""What of these manifests would the API server refuse? Asked of it by a strict dry run.

Its schemas, its defaults and the operators' webhooks judge each; a field that no schema knows is
refused. They do not look into text, such as a CNI configuration, nor into free-form fields.
"""

import time
from collections.abc import Sequence

from tests.kubernetes.cluster.control_plane import ADMIN, ControlPlane
from tests.kubernetes.cluster.objects import Manifest, Objects

_STRICTLY = {"dryRun": "All", "fieldValidation": "Strict"}
_LOOKED_UP = ("Namespace", "TrainingRuntime", "ClusterTrainingRuntime")
"""Kinds that must be there when others that name them are judged."""
_SEEN_S = 30.0
"""Until an operator's webhook knows of what was created a moment ago."""
_POLL_S = 0.1


def dry_run(
    control_plane: ControlPlane, manifests: Sequence[Manifest], *, user: str = ADMIN
) -> list[str]:
    """What was refused and why, a line each, with the path of the field: empty where all is well.

    `PyTorchJob train: … strict decoding error: unknown field "spec.nprocsPerNode"`. Namespaces and
    runtimes of training jobs are created after they passed, and stay: what names them is judged for
    itself then.
    """
    with control_plane.http(user) as http:
        objects = Objects(http)
        first = [each for each in manifests if each["kind"] in _LOOKED_UP]
        first.sort(key=lambda each: _LOOKED_UP.index(each["kind"]))
        others = [each for each in manifests if each["kind"] not in _LOOKED_UP]
        refused = []
        for manifest in first:
            refusal = refusal_of(objects, manifest)
            if refusal is None:
                objects.apply(manifest)
            refused.append(refusal)
        wait_s = _SEEN_S if any(each["kind"] != "Namespace" for each in first) else 0.0
        refused += [_lasting_refusal(objects, each, wait_s) for each in others]
    return [each for each in refused if each is not None]


def refusal_of(objects: Objects, manifest: Manifest) -> str | None:
    """Of one manifest, in the API server's words."""
    name = manifest["metadata"].get("name") or manifest["metadata"].get("generateName")
    try:
        response = objects.create(manifest, **_STRICTLY)
        if response.is_error and response.json()["reason"] == "AlreadyExists":
            response = objects.replace(manifest, **_STRICTLY)
    except LookupError as error:
        return f"{manifest['kind']} {name}: {error}"
    if response.is_success:
        return None
    return f"{manifest['kind']} {name}: {response.json()['message']}"


def _lasting_refusal(objects: Objects, manifest: Manifest, wait_s: float) -> str | None:
    end_s = time.monotonic() + wait_s
    while (refusal := refusal_of(objects, manifest)) and "not found" in refusal:
        if time.monotonic() >= end_s:
            break
        time.sleep(_POLL_S)
    return refusal
