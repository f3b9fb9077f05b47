"""What does a user's catalog file say? Entries of every kind, each with its place."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from broadgauge.catalog import like
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
from broadgauge.specs.errors import ExperimentError, InputError, Problem
from broadgauge.specs.text.document import Document, KeyPath
from broadgauge.specs.text.plain_messages import value_problem

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
EXAMPLES = {
    "gpus": "h100-sxm",
    "transports": "roce",
    "networks": "vnic-100g",
    "nodes": "p5.48xlarge",
    "models": "llama3-8b",
    "storage": "nvme-pcie4",
    "prices": "aws-p5.48xlarge",
    "busbw": "h100-8-8g",
}
"""A shipped entry of each kind, for hints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """One entry, and where it stands."""

    kind: str
    entry: Entry
    filename: str
    where: str


def read_entries(text: str, filename: str) -> tuple[Read, ...]:
    """Every entry of a file that has the lists of the shipped ones. Raises ExperimentError."""
    from broadgauge.specs.text.yaml_source import (
        parse_yaml,  # a fifth of a second, for users' files
    )

    document = parse_yaml(text, filename)
    problems = list(_problems_of_form(document))
    read: list[Read] = []
    if not problems:
        for kind in MODELS:
            for i in range(len(document.data.get(kind, ()))):
                entry = _entry(document, kind, i, read)
                if isinstance(entry, list):
                    problems += entry
                else:
                    read.append(_read(document, (kind, i), kind, entry))
    problems += _named_twice(read)
    if problems:
        raise ExperimentError(problems)
    return (*read, *_prices_of_gpus(document, read))


def _read(document: Document, place: KeyPath, kind: str, entry: Entry) -> Read:
    where = document.where(place)
    return Read(kind=kind, entry=entry, filename=document.filename, where=where)


def _entry(document: Document, kind: str, i: int, read: Sequence[Read]) -> Entry | list[Problem]:
    """The entry, or what is wrong with it."""
    data = document.data[kind][i]
    try:
        filled = _filled(kind, data, read, document.filename)
        return MODELS[kind].model_validate(filled)
    except InputError as error:  # of the entry that it is like
        return [Problem(document.where((kind, i, like.KEY)), error.message, error.hint)]
    except ValidationError as error:
        return list(_problems(document, (kind, i), error))


def _prices_of_gpus(document: Document, read: Sequence[Read]) -> Iterator[Read]:
    """An entry of `prices` for each GPU that says its own."""
    places = {each["name"]: i for i, each in enumerate(document.data.get("gpus", ()))}
    priced = {each.entry.name for each in read if each.kind == "prices"}
    for gpu in (each.entry for each in read):
        if not isinstance(gpu, Gpu) or gpu.price_usd_per_hour is None or gpu.name in priced:
            continue
        price = PriceEntry(
            name=gpu.name,
            gpu=gpu.name,
            price_usd_per_hour=gpu.price_usd_per_hour,
            source=gpu.source,
            date=gpu.date,
        )
        place = ("gpus", places[gpu.name], "price_usd_per_hour")
        yield _read(document, place, "prices", price)


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


def _filled(kind: str, data: dict[str, Any], read: Sequence[Read], file: str) -> dict[str, Any]:
    """An entry with what its transport says, or the entry that it is like; the file's own first.

    Raises InputError where nobody knows that entry.
    """
    if kind in like.KINDS and data.get(like.KEY) is not None:
        return like.filled(kind, data, [each.entry for each in read if each.kind == kind], file)
    if kind != "networks":
        return data
    own = [each.entry for each in read if isinstance(each.entry, TransportPrior)]
    return with_prior(data, (*own, *known_transports()))


def _problems_of_form(document: Document) -> Iterator[Problem]:
    """A mapping of kinds to lists of mappings, and nothing else."""
    if not isinstance(document.data, dict):
        message = "a catalog is a mapping of kinds to lists of entries"
        yield Problem(document.where(()), message, f"kinds: {', '.join(MODELS)}")
        return
    for key, entries in document.data.items():
        where = document.where((key,))
        if key not in MODELS:
            kinds = did_you_mean(key, MODELS) or f"kinds: {', '.join(MODELS)}"
            yield Problem(where, f"unknown kind `{key}`", kinds)
        elif not isinstance(entries, list):
            yield Problem(where, f"`{key}` takes a list of entries", _example(key))
        else:
            for i, entry in enumerate(entries):
                if not isinstance(entry, dict):
                    where = document.where((key, i))
                    yield Problem(where, "an entry is a mapping of keys", _example(key))


def _problems(document: Document, place: KeyPath, error: ValidationError) -> Iterator[Problem]:
    """What is wrong with an entry: all that is missing in one, and nothing that only follows."""
    kind, data = str(place[0]), document.data[place[0]][place[1]]
    details = error.errors()
    missing = [each["loc"] for each in details if each["type"] == "missing"]
    told = [each for each in details if each["type"] != "missing"]
    written = [each for each in told if not each["loc"] or each["loc"][0] in data]
    for each in written or told:
        yield _problem(document, (*place, *each["loc"]), each)
    is_of_transport = kind == "networks" and any(each["loc"][:1] == ("transport",) for each in told)
    if missing and not is_of_transport:  # which would have said the rest
        yield _missing(document, place, missing)


def _missing(document: Document, place: KeyPath, missing: Sequence[KeyPath]) -> Problem:
    kind = str(place[0])
    keys = ", ".join(f"`{_key((*place, *each))}`" for each in missing)
    hint = _example(kind)
    if kind in like.KINDS and any(len(each) == 1 for each in missing):
        hint = f"take what you do not know from a known one: `{like.KEY}: {EXAMPLES[kind]}`"
    where = document.where((*place, *missing[0]))
    return Problem(where, f"{keys} {'is' if len(missing) == 1 else 'are'} missing", hint)


def _problem(document: Document, path: KeyPath, detail: ErrorDetails) -> Problem:
    """One thing that is wrong with an entry, with a hint that works."""
    if detail["type"] == "placed":
        path = (*path, *detail["ctx"]["path"])
    kind, key = str(path[0]), _key(path)
    where = document.where(path)
    if detail["type"] == "extra_forbidden":
        known = MODELS[kind].model_fields if len(path) == 3 else {}
        return Problem(where, f"unknown key `{key}`", did_you_mean(key, known) or _example(kind))
    message, hint = value_problem(key, detail)
    return Problem(where, message, hint or _example(kind))


def _key(path: KeyPath) -> str:
    """`("gpus", 0, "peaks", "bf16")` → `peaks.bf16`; of the whole entry its kind."""
    words = [str(part) for part in path[2:]]
    return ".".join(words) if words else str(path[0]).removesuffix("s")


def _example(kind: str) -> str:
    """A shipped entry shows what one says."""
    return f"`broadgauge catalog show {EXAMPLES[kind]}` shows such an entry"
