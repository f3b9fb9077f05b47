"""Which operations of RFC 6902 put a network into a part of a job, and what are they in words?

Source: RFC 6901 (the places' form); Kubernetes, "Extended resources": requests and limits are
equal.
"""

import json
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from broadgauge.manifests.job_parts import escaped
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.specs.errors import InputError
from broadgauge.specs.secrets.variables import holds_secret

_LONGEST_SHOWN = 40
"""Characters of a library's setting."""
ADAPTERS = "NCCL_IB_HCA"
_QUANTITY = re.compile(r"(?P<number>\d{1,20}(\.\d{1,9})?)(?P<unit>[KMGTPE]i|[kMGTPE]|)")
_UNITS = {
    "": 1,
    **{f"{letter}i": 1 << 10 * power for power, letter in enumerate("KMGTPE", 1)},
    **{letter: 1000**power for power, letter in enumerate("kMGTPE", 1)},
}

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


def names_adapters(container: Mapping[str, Any], variables: Mapping[str, str]) -> bool:
    """Does this container, or what is set in it, say by which adapters NCCL sends?"""
    env = container.get("env")
    entries = env if isinstance(env, list) else []
    own = [each.get("name") for each in entries if isinstance(each, dict)]
    return ADAPTERS in variables or ADAPTERS in own


def ask_for(
    place: str, container: Mapping[str, Any], resources: Mapping[str, str], owner: str
) -> Changes:
    """Resources of a container, with their limits. Raises InputError where it asks for another
    number of one already, or where Kubernetes would refuse it."""
    if not resources:
        return [], []
    asked = container.get("resources")
    known = asked if isinstance(asked, dict) else {}
    _check_asked(known, resources, owner)
    if not known:
        both = {"requests": dict(resources), "limits": dict(resources)}
        return [{"op": "add", "path": f"{place}/resources", "value": both}], [_asking(resources)]
    operations: list[Manifest] = []
    for key in ("requests", "limits"):
        there = known.get(key)
        path = f"{place}/resources/{key}"
        if not isinstance(there, dict):
            operations.append({"op": "add", "path": path, "value": dict(resources)})
            continue
        operations += [
            {"op": "add", "path": f"{path}/{escaped(name)}", "value": quantity}
            for name, quantity in resources.items()
            if name not in there
        ]
    return operations, [_asking(resources)] if operations else []


def _check_asked(known: Mapping[str, Any], wanted: Mapping[str, str], owner: str) -> None:
    """Raises InputError.

    Source: Kubernetes, "Manage HugePages" (CPUs or memory must be asked for beside them).
    """
    lists = [each for key in ("requests", "limits") if isinstance(each := known.get(key), dict)]
    for name, quantity in wanted.items():
        for there in lists:
            if name in there and not _is_same_amount(str(there[name]), quantity):
                raise InputError(
                    f"{owner}: it asks for {there[name]} {name} already, and the network for "
                    f"{quantity}",
                    hint=f"the same number in both, or no {name} in the manifest",
                )
    pages = next((name for name in wanted if name.startswith("hugepages-")), None)
    if pages is not None and not any(key in there for there in lists for key in ("cpu", "memory")):
        raise InputError(
            f"{owner}: it asks for neither CPUs nor memory, and Kubernetes gives {pages} only "
            "beside them",
            hint="`resources.requests: {cpu: …, memory: …}` in the manifest",
        )


def _is_same_amount(one: str, other: str) -> bool:
    """`5Gi` is `5120Mi`."""
    amounts = [amount(text) for text in (one, other)]
    return one == other if None in amounts else amounts[0] == amounts[1]


def amount(quantity: str) -> Fraction | None:
    """None: it is none that we know. Source: Kubernetes, "Quantity"."""
    match = _QUANTITY.fullmatch(quantity)
    return None if match is None else Fraction(match["number"]) * _UNITS[match["unit"]]


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
