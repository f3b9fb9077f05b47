"""What does `broadgauge catalog` print? A line an entry, or every figure of one with its source."""

from collections.abc import Iterator, Mapping

from pydantic import BaseModel
from rich.console import Console
from rich.text import Text

from broadgauge.catalog.catalog import Catalog
from broadgauge.catalog.constants import Constant
from broadgauge.catalog.entries import Entry, Spread
from broadgauge.catalog.gpus import Gpu
from broadgauge.catalog.models import ModelEntry
from broadgauge.catalog.networks import NetworkClass
from broadgauge.catalog.nodes import NodeEntry
from broadgauge.report.rows.catalog import TABLES, carried_words
from broadgauge.report.terminal.tables import heading, indented, print_table, sentence
from broadgauge.specs.units import show_size, show_time
from broadgauge.specs.workloads.metrics import unit_of

KINDS = {
    "gpus": "peaks by precision, memory, links",
    "networks": "nominal rate, what collectives carry of it, latency, needs",
    "transports": "what a network's transport says where nobody has measured",
    "nodes": "servers and cloud instances",
    "models": "shapes, with the parameters that follow from them",
    "storage": "read and write rates",
    "prices": "USD an hour, with date",
    "busbw": "published bus bandwidths: is my number normal?",
    "fabrics": "what a cloud's network asks of a pod in Kubernetes: resources, variables, daemon",
    "frameworks": "how a training framework runs a layer and reduces gradients",
    "constants": "where the predictor starts, and what was fitted",
    "widenings": "where predictions are less certain, as few have measured such trainings",
}
_SAID_UNDER = {
    "gpus": "Dense peaks; memory and links (NVLink, one direction, all of a GPU) in 10^9 byte/s.",
    "networks": "What one communicator carries, low to high in nine cases of ten. Over sockets "
    "several communicators of a node add up until the NIC is full. Any other network: "
    "transport-rate*NICs, like roce-400g*8.",
    "constants": "`fitted`: on every source in the table that `broadgauge validate` scores; each "
    "source is scored with constants that were fitted without it.",
    "busbw": "As nccl-tests defines it; all_reduce. Published figures, not limits.",
}
_SAID_APART = ("name", "aliases", "source", "date", "sources", "note", "fitted_on", "needs")


def print_overview(catalog: Catalog, console: Console) -> None:
    """Which kinds are there, and how many entries of each?"""
    rows = [(kind, str(len(catalog.entries(kind))), what) for kind, what in KINDS.items()]
    width = max(len(kind) for kind in KINDS)
    for kind, number, what in rows:
        for line in _hanging(f"{kind:<{width}}  {number:>4}  ", what, console):
            console.print(line)
    console.print()
    sentence("broadgauge catalog list KIND, show NAME, check [FILE]", console, "dim")
    print_replaced(catalog, console)


def print_kind(kind: str, catalog: Catalog, console: Console) -> None:
    """A line an entry."""
    heading(f"{kind}: {KINDS[kind]}", console)
    head, cells = TABLES[kind]
    print_table(head, [cells(entry, catalog) for entry in catalog.entries(kind)], console)
    if kind in _SAID_UNDER:
        sentence(_SAID_UNDER[kind], console, "dim")


def print_entry(kind: str, entry: Entry, catalog: Catalog, console: Console) -> None:
    """Every figure with its unit, and where it is from."""
    heading(f"{entry.name}  ({kind})", console)
    if entry.aliases:
        _line("also", ", ".join(entry.aliases), console)
    figures = [*_figures(entry), *_derived(entry, catalog)]
    width = max(len(label) for label, _ in figures)
    for label, value in figures:
        _line(f"{label:<{width}}", value, console)
    needs = getattr(entry, "needs", ())
    for i, need in enumerate(needs):
        _line("needs" if i == 0 else "     ", need, console)
    console.print()
    _line("source", f"{entry.source or 'none'} ({entry.date or 'no date'})", console)
    for key, source in entry.sources.items():
        _line("source", f"of {key}: {source}", console)
    if entry.fitted_on:
        _line("fitted on", ", ".join(entry.fitted_on), console)
    if entry.note:
        _line("note", entry.note, console)
    _line("from", catalog.where(kind, entry), console)


def print_replaced(catalog: Catalog, console: Console) -> None:
    """Which shipped entries do the user's files replace?"""
    for each in catalog.replaced:
        sentence(f"note: {each}", console, "dim")


def _line(label: str, value: str, console: Console) -> None:
    for line in _hanging(f"{label}  ", value, console):
        console.print(line)


def _hanging(label: str, words: str, console: Console) -> Iterator[Text]:
    """Words that wrap beside their label, never under it; below it where that leaves no room."""
    if console.width - len(label) < 14:
        yield Text(label.rstrip())
        yield from indented(Text(words), console, 4)
        return
    lines = indented(Text(words), console, len(label))
    for i, line in enumerate(lines):
        yield Text(label + line.plain[len(label) :]) if i == 0 else line


def _figures(entry: Entry) -> Iterator[tuple[str, str]]:
    for key in type(entry).model_fields:
        if key not in _SAID_APART:
            yield from _shown(key, getattr(entry, key))


def _shown(key: str, value: object) -> Iterator[tuple[str, str]]:
    if value is None or value in ((), "", {}):
        return
    if isinstance(value, Spread):
        unit = _unit(key)
        yield key, f"{_number(value.value, unit)} ({_range(value, unit)})"
    elif isinstance(value, BaseModel):
        for inner in type(value).model_fields:
            for label, text in _shown(inner, getattr(value, inner)):
                yield f"{key}.{label}", text
    elif isinstance(value, Mapping):
        yield key, ", ".join(f"{name}={text}" for name, text in value.items())
    elif isinstance(value, tuple):
        if isinstance(value[0], BaseModel):
            for i, item in enumerate(value):
                parts = (f"{k} {v}" for k, v in _shown_parts(item))
                yield f"{key}[{i}]", ", ".join(parts)
        else:
            yield key, ", ".join(map(str, value))
    else:
        yield key, _plain(key, value)


def _plain(key: str, value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return _number(value, _unit(key))
    return str(value)


def _shown_parts(item: BaseModel) -> Iterator[tuple[str, str]]:
    for key in type(item).model_fields:
        yield from _shown(key, getattr(item, key))


def _unit(key: str) -> str:
    if key.endswith("_gib"):
        return "GiB"
    unit = unit_of(f"_{key}") or ""
    return {"ratio": "", "count": "", "10^12 FLOP/s": "TFLOP/s"}.get(unit, unit)


def _number(value: float, unit: str) -> str:
    if unit == "s":
        return show_time(value)
    if unit == "bytes":
        return show_size(value)
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"
    return f"{text} {unit}".rstrip()


def _range(spread: Spread, unit: str) -> str:
    return f"{_number(spread.low, unit)} to {_number(spread.high, unit)}"


def _derived(entry: Entry, catalog: Catalog) -> Iterator[tuple[str, str]]:
    """What follows from the figures, marked as such."""
    match entry:
        case Gpu():
            yield "→ PCIe, one way", f"{entry.pcie_gbyte_per_s:.3g} GB/s"
        case NetworkClass():
            yield "→ a node carries", f"{carried_words(entry)} GB/s"
        case ModelEntry():
            yield "→ parameters", f"{entry.params:,}"
            if entry.experts > 1:
                yield "→ active parameters", f"{entry.active_params:,}"
        case Constant():
            fit = next((fit for fit in catalog.fitted if fit.without is None), None)
            if fit is not None and entry.name in fit.constants:
                yield "→ fitted", f"{fit.constants[entry.name]:.4g}"
                yield "→ fitted on", ", ".join(fit.fitted_on)
        case NodeEntry():
            price = catalog.gpu_price(entry.gpu, entry.name)
            if price is not None and price.price.node == entry.name:
                yield "→ one GPU", f"{price.price_usd_per_hour:.2f} USD/h ({price.price.date})"
