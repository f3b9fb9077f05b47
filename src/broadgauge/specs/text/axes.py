"""Which entries does a list expand to? In an entry of `networks`, `storages` or `workloads`, a list
where a field takes one value is an axis: the entry becomes one for each point of the product of its
axes.

It is done on plain data, before anything is validated: the models tell which fields take lists by
nature, and every value keeps its place in the file.
"""

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

from pydantic import BaseModel

from broadgauge.specs.base import NAME_PATTERN
from broadgauge.specs.errors import ExperimentError, Problem
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.networks.network import Network, NodePath
from broadgauge.specs.storages.storage import Storage
from broadgauge.specs.text.axis_names import expanded_names
from broadgauge.specs.text.document import Assembly, Document, KeyPath
from broadgauge.specs.text.fields import annotations_at, discriminators, models_in, takes_list
from broadgauge.specs.workloads.workload import phase

EXPANDED = ("networks", "storages", "workloads")
NEVER_AXES = ("name", "kind", "phase")
MAX_ENTRIES = 64
"""As many as an experiment takes; a typing error must not expand for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    path: tuple[str, ...]
    """Inside the entry: `("model", "hidden")`."""
    values: list[Any]


def expand_axes(document: Document) -> Document:
    """The experiment with every entry that has axes expanded, and all that names it following.

    Raises ExperimentError for an empty axis, a value that stands twice, and too many entries.
    """
    if not isinstance(document.data, dict):
        return document
    expansion = _Expansion(document=document)
    expansion.assembly.place(document, at=(), to=())
    data = {key: expansion.part(key, value) for key, value in document.data.items()}
    whole = expansion.assembly.document(document.filename, data)
    return _following(whole, expansion.names) if any(expansion.names.values()) else whole


@dataclass(frozen=True, slots=True, kw_only=True)
class _Expansion:
    document: Document
    assembly: Assembly = field(default_factory=Assembly)
    names: dict[str, dict[str, list[str]]] = field(
        default_factory=lambda: {key: {} for key in EXPANDED}
    )
    """Of each list, of each entry that had axes by its name in the file: what came of it."""

    def part(self, key: str, value: Any) -> Any:
        """One top-level part of the experiment."""
        if key not in EXPANDED or not isinstance(value, list):
            return self.assembly.take(self.document, value, at=(key,), to=(key,))
        self.assembly.place(self.document, at=(key,), to=(key,))
        self._refuse_twins(key, value)
        entries: list[Any] = []
        for i, entry in enumerate(value):
            self._add(entries, entry, (key, i))
        return entries

    def _add(self, entries: list[Any], entry: Any, at: tuple[str, int]) -> None:
        """The entry, or all that it expands to."""
        key, _ = at
        model = _model(key, entry)
        axes = [] if model is None else list(_axes(model, entry, ()))
        if not axes:
            entries.append(self.assembly.take(self.document, entry, at=at, to=(key, len(entries))))
            return
        _check(self.document, at, axes, room=MAX_ENTRIES - len(entries))
        name = _name(entry, model)
        names = expanded_names(name, [(axis.path, axis.values) for axis in axes]) if name else []
        if name:
            self.names[key][name] = names
        for number, chosen in enumerate(_points(at, axes)):
            made = self._point(entry, at, (key, len(entries)), chosen)
            entries.append(made | {"name": names[number]} if name else made)

    def _point(self, value: Any, at: KeyPath, to: KeyPath, chosen: dict[KeyPath, int]) -> Any:
        """A copy with one value in place of each axis, placed where it stands in the list."""
        if at in chosen:
            index = chosen[at]
            self.assembly.place(self.document, at=at, to=to)
            return self.assembly.take(self.document, value[index], at=(*at, index), to=to)
        if not isinstance(value, dict):
            return self.assembly.take(self.document, value, at=at, to=to)
        self.assembly.place(self.document, at=at, to=to)
        return {
            key: self._point(item, (*at, key), (*to, key), chosen) for key, item in value.items()
        }

    def _refuse_twins(self, key: str, entries: list[Any]) -> None:
        """A name must say which entry's axes are meant."""
        names = [_name(entry, _model(key, entry)) for entry in entries]
        for i, name in enumerate(names):
            if name and name in names[:i]:
                message = f"two {key} are named `{name}`"
                _refuse(self.document, (key, i, "name"), message, "give one another `name`")


def _points(at: KeyPath, axes: list[Axis]) -> Iterator[dict[KeyPath, int]]:
    """Which value of each axis? Every combination, the last axis fastest."""
    for indices in itertools.product(*(range(len(axis.values)) for axis in axes)):
        yield {(*at, *axis.path): index for axis, index in zip(axes, indices, strict=True)}


def _model(key: str, entry: Any) -> type[BaseModel] | None:
    """What is this entry read as? None: validation will say that it is nothing."""
    if not isinstance(entry, dict):
        return None
    if key == "networks":
        return NodePath if "path" in entry else Network
    if key == "storages":
        return Storage
    workloads = models_in(Experiment.model_fields["workloads"].annotation)
    kind, asked = entry.get("kind"), phase(entry)
    of_kind = [model for model in workloads if kind in discriminators(model)]
    of_phase = (model for model in of_kind if asked in discriminators(model))
    return next(of_phase if len(of_kind) > 1 else iter(of_kind), None)


def _axes(annotation: Any, mapping: dict[str, Any], path: tuple[str, ...]) -> Iterator[Axis]:
    """The lists where one value is taken, in the file's order."""
    for key, value in mapping.items():
        annotations = annotations_at(annotation, key)
        if not annotations or (not path and key in NEVER_AXES):
            continue
        if isinstance(value, dict):
            for each in annotations:
                yield from _axes(each, value, (*path, key))
        elif isinstance(value, list) and not any(takes_list(each) for each in annotations):
            yield Axis(path=(*path, key), values=value)


def _check(document: Document, at: KeyPath, axes: list[Axis], room: int) -> None:
    """Raises ExperimentError where the axes can't be expanded as they stand."""
    for axis in axes:
        if not axis.values:
            path: KeyPath = (*at, *axis.path)
            _refuse(document, path, f"`{axis.path[-1]}`: the list is empty, so nothing is left")
    count = math.prod(len(axis.values) for axis in axes)
    if count > room:  # before the values are compared, each with each
        product = " x ".join(f"{axis.path[-1]} {len(axis.values)}" for axis in axes)
        _refuse(
            document,
            at,
            f"`{at[0]}[{at[1]}]` expands to {count:,} entries ({product}), "
            f"and {at[0]} are {MAX_ENTRIES} at most",
            "fewer values, or several experiments",
        )
    for axis in axes:
        path = (*at, *axis.path)
        for i, value in enumerate(axis.values):
            if any(_is_same(value, other) for other in axis.values[:i]):
                _refuse(document, (*path, i), f"`{value}` stands twice in `{axis.path[-1]}`")


def _is_same(value: Any, other: Any) -> bool:
    """`true` is not 1."""
    return type(value) is type(other) and value == other


def _refuse(document: Document, path: KeyPath, message: str, hint: str | None = None) -> NoReturn:
    raise ExperimentError([Problem(document.where(path), message, hint)])


def _name(entry: Any, model: type[BaseModel] | None) -> str:
    """Empty where it is missing or no name: validation will say so."""
    if model is None:
        return ""
    name = entry.get("name", model.model_fields["name"].default)
    return name if isinstance(name, str) and re.fullmatch(NAME_PATTERN, name) else ""


def _following(document: Document, expanded: dict[str, dict[str, list[str]]]) -> Document:
    """Where an expanded entry is named, all that came of it are meant."""
    assembly = Assembly()

    def rewrite(value: Any, path: KeyPath) -> Any:
        assembly.place(document, at=path, to=path)
        if isinstance(value, dict):
            return {key: rewrite(item, (*path, key)) for key, item in value.items()}
        key = _list_named_in(path)
        names = expanded.get(key, {})
        if isinstance(value, str):
            return _pattern(value, names[value], document.data[key]) if value in names else value
        if isinstance(value, list) and names:
            return _spread(assembly, document, value, path, names)
        if isinstance(value, list):
            return [rewrite(item, (*path, i)) for i, item in enumerate(value)]
        return value

    return assembly.document(document.filename, rewrite(document.data, ()))


def _list_named_in(path: KeyPath) -> str:
    """Of which list are names at this place? Empty: there are none."""
    match path:
        case ("workloads", int(), "networks" | "storages" as key):
            return key
        case ("kubernetes", "volumes" | "secrets", int() | str(), "workloads"):
            return "workloads"
        case (
            "hypotheses" | "published",
            int(),
            "cases" | "over",
            "network" | "storage" | "workload" as key,
        ):
            return f"{key}s"
        case ("skip_if", int(), "network" | "storage" | "workload" as key):
            return f"{key}s"
    return ""


def _pattern(name: str, names: list[str], entries: list[Any]) -> str | list[str]:
    """For a selector: `eth-*` where that means no other entry, else the names."""
    start = f"{name}-"
    known = [entry["name"] for entry in entries if isinstance(entry, dict) and "name" in entry]
    meant = [each for each in known if isinstance(each, str) and each.startswith(start)]
    return f"{start}*" if meant == names else names


def _spread(
    assembly: Assembly,
    document: Document,
    items: list[Any],
    path: KeyPath,
    names: dict[str, list[str]],
) -> list[Any]:
    spread: list[Any] = []
    for i, item in enumerate(items):
        for name in names.get(item, [item]) if isinstance(item, str) else [item]:
            assembly.place(document, at=(*path, i), to=(*path, len(spread)))
            spread.append(name)
    return spread
