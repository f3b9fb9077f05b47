"""Which changes of a run are asked for, by flags or from Python? Lists become every combination."""

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from broadgauge.catalog.catalog import Catalog
from broadgauge.predict.asking.from_catalog import fabric_named
from broadgauge.predict.case import SplitStrategy
from broadgauge.predict.runs.cases import RunCase
from broadgauge.predict.runs.network import CarriedFabric
from broadgauge.predict.whatif.changes import Change, NamedNetwork
from broadgauge.results.model import RunSummary
from broadgauge.specs.base import did_you_mean
from broadgauge.specs.errors import InputError
from broadgauge.specs.networks.network import Network
from broadgauge.specs.units import parse_rate_gbps, show_rate
from broadgauge.specs.workloads.gpt import DATA_TYPE_BYTES, DataType

STRATEGIES: tuple[SplitStrategy, ...] = ("ddp", "fsdp", "hsdp")
MOST_CHANGES = 1000
MOST_NODES = 16_384
MEASURED_SPREAD_RATIO = 1.1
"""Of a rate that a user says was measured."""
_RATE = re.compile(r"[0-9.]+ *[kKMGT]?(bit/s|bps|b)")
Part = Callable[[Change], Change]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedChanges:
    """Values of each property, as texts; of an empty one the run's own stays."""

    network: Sequence[str] = ()
    nodes: Sequence[str] = ()
    strategy: Sequence[str] = ()
    accumulation: Sequence[str] = ()
    gradient_dtype: Sequence[str] = ()


def changes_of(
    asked: AskedChanges, run: RunSummary, base: RunCase, catalog: Catalog
) -> tuple[Change, ...]:
    """Every combination, each with its label. Raises InputError."""
    axes = [
        [_network(text, run, base, catalog) for text in dict.fromkeys(asked.network)],
        [_nodes(text) for text in dict.fromkeys(asked.nodes)],
        [_strategy(text) for text in dict.fromkeys(asked.strategy)],
        [_accumulation(text) for text in dict.fromkeys(asked.accumulation)],
        [_gradients(text) for text in dict.fromkeys(asked.gradient_dtype)],
    ]
    combinations = list(itertools.product(*(axis or [_same] for axis in axes)))
    if len(combinations) > MOST_CHANGES:
        raise InputError(
            f"{len(combinations):,} combinations are more than the {MOST_CHANGES:,} that are "
            "answered at once",
            hint="shorter lists",
        )
    return tuple(_combined(parts) for parts in combinations)


def check_model(name: str | None, base: RunCase, catalog: Catalog) -> None:
    """Is the run of this model? Raises InputError: a run says nothing of another one."""
    if name is None:
        return
    asked, own = catalog.model(name), base.workload.model
    if (asked.layers, asked.hidden) != (own.layers, own.hidden):
        raise InputError(
            f"{base.case.label} trained {own.layers} layers of {own.hidden}, and {asked.name} has "
            f"{asked.layers} of {asked.hidden}: a run answers for its own model",
            hint=f"`broadgauge predict --model {asked.name}` asks for another",
        )


def notes_of(
    storage: str | None, base: RunCase, changes: Sequence[Change], catalog: Catalog
) -> tuple[str, ...]:
    """What a reader of the answers must know. Raises InputError for an unknown storage."""
    notes = [] if storage is None else [_storage_note(storage, catalog)]
    if base.case.backend == "gloo" and any(change.kind is not None for change in changes):
        notes.append(
            "this run sent over Gloo from cores; a catalog's network is what NCCL gets of it from "
            "GPUs"
        )
    return (*notes, *catalog.replaced_words())


def _storage_note(name: str, catalog: Catalog) -> str:
    entry = catalog.storage_named(name)
    return (
        f"{entry.name} changes nothing here: the training reads its text into memory before its "
        "first step and writes no checkpoint, so no measured step waited for storage"
    )


def _combined(parts: Sequence[Part]) -> Change:
    change = Change()
    for part in parts:
        change = part(change)
    return change


def _same(change: Change) -> Change:
    return change


def _labelled(change: Change, words: str) -> str:
    return f"{change.label}, {words}" if change.label else words


def _network(text: str, run: RunSummary, base: RunCase, catalog: Catalog) -> Part:
    """One of the run by its name, an emulated one by its rate, else one of the catalog."""
    own = {case.case.plain_network_name: case.case.link for case in run.candidates}
    own[base.case.plain_network_name] = base.case.link
    link = own.get(text)
    if link is None and _RATE.fullmatch(text):
        link = _at_rate(text, base)
    if link is not None:
        emulated, label = link, text
        return lambda change: replace(change, network=emulated, label=_labelled(change, label))
    try:
        kind = _named(text, catalog)
    except InputError as error:
        near = did_you_mean(text, own)
        hint = near if near is not None and near.startswith("did") else error.hint
        raise InputError(f"--network: {error.message}", hint=hint) from None
    return lambda change: replace(change, kind=kind, label=_labelled(change, kind.label))


def _at_rate(text: str, base: RunCase) -> Network:
    """The run's own network at another line rate; a plain one where it has none."""
    rate = parse_rate_gbps(text)
    if not isinstance(rate, float) or not rate > 0:
        raise InputError(f"--network {text}: zero bandwidth", hint="`25 Gbit/s`, or a name")
    link = base.case.link
    if link is None:
        return Network(name="emulated", rate_gbps=rate)
    changes = {"rate_gbps": rate, "receive_rate_gbps": None, "slow_pairs": ()}
    return Network.model_validate(
        {**link.model_dump(), **changes, "name": "emulated", "description": show_rate(rate)}
    )


def _named(text: str, catalog: Catalog) -> NamedNetwork:
    fabric = fabric_named(text, catalog)
    carried = CarriedFabric(fabric=fabric, basis="line", host_ratio=0.0)
    measured = fabric.measured_node_gbyte_per_s
    if measured is not None:
        return NamedNetwork(
            carried=carried,
            label=text,
            gbyte_per_s=measured,
            low_gbyte_per_s=measured / MEASURED_SPREAD_RATIO,
            high_gbyte_per_s=measured * MEASURED_SPREAD_RATIO,
        )
    prior = catalog.network(text).carried()
    return NamedNetwork(
        carried=carried,
        label=text,
        gbyte_per_s=prior.gbyte_per_s,
        low_gbyte_per_s=prior.low_gbyte_per_s,
        high_gbyte_per_s=prior.high_gbyte_per_s,
    )


def _number(text: str, flag: str, most: int) -> int:
    if not text.isdigit() or not 1 <= int(text) <= most:
        raise InputError(f"{flag} takes whole numbers from 1 to {most:,}, not `{text}`")
    return int(text)


def _nodes(text: str) -> Part:
    nodes = _number(text, "--nodes", MOST_NODES)
    words = f"{nodes} node{'s' * (nodes > 1)}"
    return lambda change: replace(change, nodes=nodes, label=_labelled(change, words))


def _accumulation(text: str) -> Part:
    number = _number(text, "--accumulation", 4096)
    words = f"{number} micro-batches"
    return lambda change: replace(change, accumulation=number, label=_labelled(change, words))


def _strategy(text: str) -> Part:
    found = next((each for each in STRATEGIES if each == text), None)
    if found is None:
        raise InputError(f"--strategy can't be `{text}`", hint=did_you_mean(text, STRATEGIES))
    strategy = found
    return lambda change: replace(change, strategy=strategy, label=_labelled(change, strategy))


def _gradients(text: str) -> Part:
    found: DataType | None = next((each for each in DATA_TYPE_BYTES if each == text), None)
    if found is None:
        hint = did_you_mean(text, DATA_TYPE_BYTES)
        raise InputError(f"--gradient-dtype can't be `{text}`", hint=hint)
    size, words = float(DATA_TYPE_BYTES[found]), f"gradients in {found}"
    return lambda change: replace(change, gradient_bytes=size, label=_labelled(change, words))
