"""What does `model: {like: llama3-8b, layers: 4}` mean? A known model's sizes, and those given.

It is done on plain data, as axes are, so that all that follows sees sizes only; who reads a file
brings the catalog, which this room does not know.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from broadgauge.specs.document import Document, KeyPath
from broadgauge.specs.errors import ExperimentError, InputError, Problem

LIKE = "like"
FindModel = Callable[[str], Mapping[str, Any]]
"""All sizes of a model of that name, and its `kind`. Raises InputError with a hint."""


def with_known_models(document: Document, find_model: FindModel | None) -> Document:
    """The experiment with every `like` of a model replaced. Raises ExperimentError."""
    if find_model is None:
        return document
    for path, model in _models(document.data):
        if isinstance(model.get(LIKE), str):
            _fill(document, path, model, find_model)
    return document


def _models(data: Any) -> Iterator[tuple[KeyPath, dict[str, Any]]]:
    """Where a model's shape may stand."""
    workloads = data.get("workloads") if isinstance(data, dict) else None
    for index, workload in enumerate(workloads if isinstance(workloads, list) else ()):
        if not isinstance(workload, dict):
            continue
        sizes = workload.get("sizes")
        inside = sizes.get("model") if isinstance(sizes, dict) else None
        for keys, model in ((("model",), workload.get("model")), (("sizes", "model"), inside)):
            if isinstance(model, dict):
                yield ("workloads", index, *keys), model


def _fill(document: Document, path: KeyPath, model: dict[str, Any], find_model: FindModel) -> None:
    name = model.pop(LIKE)
    try:
        known = find_model(name)
    except InputError as error:
        problem = Problem(document.where((*path, LIKE)), error.message, error.hint)
        raise ExperimentError([problem]) from None
    kind = model.get("kind", known["kind"])
    if kind != known["kind"]:
        problem = Problem(
            document.where((*path, "kind")), f"`{name}` is a `{known['kind']}`, no `{kind}`"
        )
        raise ExperimentError([problem])
    model.update({**known, **model})
