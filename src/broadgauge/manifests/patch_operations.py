"""Which operations of RFC 6902 put a network into a part of a job, and what are they in words?

Source: RFC 6901 (the places' form); Kubernetes, "Extended resources": requests and limits are
equal.
"""

import json
from collections.abc import Mapping
from typing import Any

from broadgauge.manifests.job_parts import escaped
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.specs.errors import InputError
from broadgauge.specs.variables import holds_secret

_LONGEST_SHOWN = 40
"""Characters of a library's setting."""

Changes = tuple[list[Manifest], list[str]]
"""Operations, and the same in words."""


def set_variables(place: str, env: Any, variables: Mapping[str, str]) -> Changes:
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


def ask_for(place: str, container: Mapping[str, Any], resources: Mapping[str, int]) -> Changes:
    """Extended resources of a container, with their limits."""
    if not resources:
        return [], []
    wanted = {name: str(number) for name, number in resources.items()}
    asked = container.get("resources")
    if not isinstance(asked, dict):
        both = {"requests": dict(wanted), "limits": dict(wanted)}
        return [{"op": "add", "path": f"{place}/resources", "value": both}], [_asking(wanted)]
    operations: list[Manifest] = []
    for key in ("requests", "limits"):
        known = asked.get(key)
        path = f"{place}/resources/{key}"
        if not isinstance(known, dict):
            operations.append({"op": "add", "path": path, "value": dict(wanted)})
            continue
        operations += [
            {"op": "add", "path": f"{path}/{escaped(name)}", "value": number}
            for name, number in wanted.items()
            if str(known.get(name)) != number
        ]
    return operations, [_asking(wanted)] if operations else []


def _asking(wanted: Mapping[str, str]) -> str:
    return "asks for " + ", ".join(f"{number} {name}" for name, number in wanted.items())


def annotate(
    place: str, template: Mapping[str, Any], annotations: Mapping[str, str], owner: str
) -> Changes:
    """Of the pods of a template. Raises InputError where one is there with another value: which
    interface is whose would not be known."""
    about = template.get("metadata")
    known = about.get("annotations") if isinstance(about, dict) else None
    there = known if isinstance(known, dict) else {}
    for name in annotations:
        if name in there and not _is_same(there[name], annotations[name]):
            raise InputError(
                f"{owner}: its pods have the annotation `{name}` already, and which interfaces it "
                "gives them is not known here",
                hint="take it out of the manifest, and name all networks in the overlay's place",
            )
    added = {name: text for name, text in annotations.items() if name not in there}
    if not added:
        return [], []
    words = [f"adds the annotation {name}" for name in added]
    if not isinstance(about, dict):
        value: object = {"annotations": added}
        return [{"op": "add", "path": f"{place}/metadata", "value": value}], words
    if not isinstance(known, dict):
        return [{"op": "add", "path": f"{place}/metadata/annotations", "value": added}], words
    return [
        {"op": "add", "path": f"{place}/metadata/annotations/{escaped(name)}", "value": text}
        for name, text in added.items()
    ], words


def _is_same(one: object, other: str) -> bool:
    """Equal as JSON, or as text."""
    try:
        return bool(json.loads(str(one)) == json.loads(other))
    except ValueError:
        return one == other
