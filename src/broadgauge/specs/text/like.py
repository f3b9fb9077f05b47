"""What does `model: llama-3.1-8b`, or `model: {like: gpt2, layers: 4}`, mean? The sizes of a known
model, and beside them what is given. And the `like` of a storage? What the catalog says of it.

It is done on plain data, after axes expand, so that all that follows sees sizes only. Who reads a
file brings the catalog, which this room does not know.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from posixpath import dirname
from typing import Any, NoReturn, Protocol

from broadgauge.specs.errors import ExperimentError, InputError, Problem
from broadgauge.specs.text.document import Document, KeyPath

PLACES: dict[str, KeyPath] = {
    "train": ("model",),
    "storage": ("model",),
    "collectives": ("sizes", "model"),
}
"""Of each kind of workload: where a model's shape stands."""
CHANGED_BY_TWINS = frozenset(("layers", "seq_len"))
"""Sizes that leave a layer what it is: with another of any other key it is another model."""


NAMES_MODEL = "like"
"""The key that one word is the value of."""


class ModelFinder(Protocol):
    """Knows models; the catalog and files are its affair, and none of this module's."""

    def __call__(self, name: str, folder: str) -> Mapping[str, Any]:
        """`kind` and sizes of the model of this name, or of the `config.json` at this path from the
        folder, and its own name as `shape_of`. Raises InputError with a hint."""
        ...


class StorageFinder(Protocol):
    """Knows storages, as the catalog has them."""

    def __call__(self, name: str) -> Mapping[str, Any]:
        """What is said of the storage of this name, and its own name as `like`. Raises InputError
        with a hint."""
        ...


def in_full(value: Any, path: KeyPath) -> Any:
    """The mapping that a model's name stands for, so that keys can be set beside it."""
    is_model = path[:1] == ("workloads",) and path[2:] in PLACES.values()
    return {NAMES_MODEL: value} if is_model and isinstance(value, str) else value


def with_known_models(document: Document, find_model: ModelFinder | None) -> Document:
    """The experiment with sizes in place of every `like`, all of them found in the document's own
    data. Raises ExperimentError with each problem's place."""
    if find_model is None:
        return document
    problems: list[Problem] = []
    for path, holder in _models(document.data):
        told = in_full(holder[path[-1]], path)
        if not isinstance(told, dict) or not {"like", "scale"} & told.keys():
            continue
        try:
            holder[path[-1]] = _Asked(document=document, path=path, told=told).sizes(find_model)
        except ExperimentError as error:
            problems += error.problems
    if problems:
        raise ExperimentError(list({str(each): each for each in problems}.values()))
    return document


def with_known_storages(document: Document, find_storage: StorageFinder | None) -> Document:
    """The experiment with what is said of each storage's `like`, where it is not given, in the
    document's own data. Raises ExperimentError with each problem's place."""
    storages = document.data.get("storages") if isinstance(document.data, dict) else None
    problems: list[Problem] = []
    for index, storage in enumerate(storages if isinstance(storages, list) else ()):
        name = storage.get(NAMES_MODEL) if isinstance(storage, dict) else None
        if find_storage is None or not isinstance(name, str):
            continue  # validation says what it takes
        try:
            known = find_storage(name)
        except InputError as error:
            where = document.where(("storages", index, NAMES_MODEL))
            problems.append(Problem(where, error.message, error.hint))
        else:
            given = {key: value for key, value in storage.items() if value is not None}
            storage |= {**known, **given, NAMES_MODEL: known[NAMES_MODEL]}
    if problems:
        raise ExperimentError(list({str(each): each for each in problems}.values()))
    return document


def _models(data: Any) -> Iterator[tuple[KeyPath, dict[Any, Any]]]:
    """The path of each model, and the mapping that holds it."""
    workloads = data.get("workloads") if isinstance(data, dict) else None
    for index, workload in enumerate(workloads if isinstance(workloads, list) else ()):
        kind = workload.get("kind") if isinstance(workload, dict) else None
        holder, keys = workload, PLACES.get(kind, ()) if isinstance(kind, str) else ()
        for key in keys[:-1]:
            holder = holder.get(key) if isinstance(holder, dict) else None
        if keys and isinstance(holder, dict) and keys[-1] in holder:
            yield ("workloads", index, *keys), holder


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A model as an experiment asks for it."""

    document: Document
    path: KeyPath
    told: Mapping[str, Any]

    def sizes(self, find_model: ModelFinder) -> dict[str, Any]:
        """All of it. Raises ExperimentError."""
        given = {key: value for key, value in self.told.items() if key not in ("like", "scale")}
        name, scale = self.told.get("like"), self.told.get("scale")
        if name is None:
            if scale is None:
                return given
            hint = "`{like: gpt2, scale: 0.25}`; without a model `layers` takes their number"
            self._refuse(
                "scale", "`scale` is a share of the layers of a model that `like` names", hint
            )
        if not isinstance(name, str) or not _may_be_scale(scale):
            return dict(self.told)  # validation says what they take
        known = self._known(name, find_model)
        if scale is not None:
            given["layers"] = self._layers(scale, known["layers"])
        self._check(given, known)
        changed = {key for key, size in known.items() if given.get(key, size) != size}
        if changed <= CHANGED_BY_TWINS:
            return {**known, "shape_of_layers": known["layers"], **given}
        return {key: size for key, size in known.items() if key != "shape_of"} | given

    def _known(self, name: str, find_model: ModelFinder) -> Mapping[str, Any]:
        try:
            return find_model(name, dirname(self.document.file_of((*self.path, "like"))))
        except InputError as error:
            self._refuse("like", error.message, error.hint)

    def _layers(self, scale: float, layers: int) -> int:
        """The share, to the nearest whole layer, and at least one."""
        if "layers" in self.told:
            hint = "one of both: `layers` is their number, `scale` a share of the model's"
            self._refuse("scale", "`scale` and `layers` both say how many layers there are", hint)
        return max(1, round(scale * layers))

    def _check(self, given: Mapping[str, Any], known: Mapping[str, Any]) -> None:
        name, kind, layers = self.told["like"], given.get("kind"), given.get("layers")
        if kind is not None and kind != known["kind"]:
            hint = "leave `kind` out: it is the model's"
            self._refuse("kind", f"`{name}` is a `{known['kind']}`, no `{kind}`", hint)
        if isinstance(layers, int) and layers > known["layers"]:
            message = f"`{name}` has {known['layers']} layers, and not {layers}"
            hint = "a smaller twin has fewer; a larger model gives its sizes without `like`"
            self._refuse("layers", message, hint)

    def _refuse(self, key: str, message: str, hint: str | None = None) -> NoReturn:
        where = self.document.where((*self.path, key))
        raise ExperimentError([Problem(where, message, hint)])


def _may_be_scale(scale: Any) -> bool:
    """Nothing, or a share."""
    is_number = isinstance(scale, int | float) and not isinstance(scale, bool)
    return scale is None or (is_number and 0 < scale <= 1)
