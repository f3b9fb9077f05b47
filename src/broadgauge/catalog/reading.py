"""What does a user's catalog file say? Entries of every kind, each with its place."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from broadgauge.catalog.entries import Entry
from broadgauge.catalog.gpus import Gpu
from broadgauge.catalog.models import ModelEntry
from broadgauge.catalog.networks import (
    NetworkClass,
    TransportPrior,
    known_transports,
    with_prior,
)
from broadgauge.catalog.nodes import NodeEntry, PriceEntry
from broadgauge.catalog.references import BusbwFigure, StorageEntry
from broadgauge.specs.base import did_you_mean
from broadgauge.specs.document import Document
from broadgauge.specs.errors import ExperimentError, Problem

MODELS: dict[str, type[Entry]] = {
    "gpus": Gpu,
    "transports": TransportPrior,
    "networks": NetworkClass,
    "nodes": NodeEntry,
    "models": ModelEntry,
    "storage": StorageEntry,
    "prices": PriceEntry,
    "busbw": BusbwFigure,
}
"""The kinds, in the order in which they are read: a network asks the transports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """One entry, and where it stands."""

    kind: str
    entry: Entry
    filename: str
    where: str


def read_entries(text: str, filename: str) -> tuple[Read, ...]:
    """Every entry of a file that has the lists of the shipped ones. Raises ExperimentError."""
    from broadgauge.specs.yaml_source import parse_yaml  # a fifth of a second, for users' files

    document = parse_yaml(text, filename)
    problems = list(_problems_of_form(document))
    read: list[Read] = []
    if not problems:
        for kind, model in MODELS.items():
            for i, data in enumerate(document.data.get(kind, ())):
                try:
                    entry = model.model_validate(_filled(kind, data, read))
                except ValidationError as error:
                    problems += _problems(document, kind, i, error)
                else:
                    where = document.where((kind, i))
                    read.append(Read(kind=kind, entry=entry, filename=filename, where=where))
    problems += _named_twice(read)
    if problems:
        raise ExperimentError(problems)
    return tuple(read)


def _named_twice(read: Sequence[Read]) -> Iterator[Problem]:
    """Two entries of one name and kind: which of them is meant?"""
    first: dict[tuple[str, str], Read] = {}
    for each in read:
        other = first.setdefault((each.kind, each.entry.name), each)
        if other is not each:
            yield Problem(
                each.where,
                f"`{each.kind}` has `{each.entry.name}` twice: the first is at {other.where}",
                "leave one of them out, or give it another name",
            )


def _filled(kind: str, data: dict[str, Any], read: Sequence[Read]) -> dict[str, Any]:
    """A network's entry with what its transport says, the file's own transports first."""
    if kind != "networks":
        return data
    own = [each.entry for each in read if isinstance(each.entry, TransportPrior)]
    return with_prior(data, (*own, *known_transports()))


def _problems_of_form(document: Document) -> Iterator[Problem]:
    """A mapping of kinds to lists of mappings, and nothing else."""
    if not isinstance(document.data, dict):
        yield Problem(document.where(()), "a catalog is a mapping of kinds to lists of entries")
        return
    for key, entries in document.data.items():
        where = document.where((key,))
        if key not in MODELS:
            yield Problem(where, f"unknown kind `{key}`", did_you_mean(key, MODELS))
        elif not isinstance(entries, list):
            yield Problem(where, f"`{key}` takes a list of entries")
        else:
            for i, entry in enumerate(entries):
                if not isinstance(entry, dict):
                    yield Problem(document.where((key, i)), "an entry is a mapping of keys")


def _problems(document: Document, kind: str, i: int, error: ValidationError) -> Iterator[Problem]:
    for detail in error.errors():
        yield _problem(document, (kind, i, *detail["loc"]), detail)


def _problem(document: Document, path: tuple[str | int, ...], detail: ErrorDetails) -> Problem:
    where, key = document.where(path), str(path[-1])
    if detail["type"] == "extra_forbidden":
        known = MODELS[str(path[0])].model_fields if len(path) == 3 else {}
        return Problem(where, f"unknown key `{key}`", did_you_mean(key, known))
    if detail["type"] == "missing":
        return Problem(where, f"`{key}` is missing")
    message = detail["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    if isinstance(detail["input"], (dict, list)):
        return Problem(where, message)
    return Problem(where, f"`{key}`: {message}, not `{detail['input']}`")
