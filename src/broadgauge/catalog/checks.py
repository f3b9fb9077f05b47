"""Which entries have no source, or say what can't be?

`broadgauge catalog check` prints what is found here, of the shipped entries or of a user's file.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from broadgauge.catalog.catalog import ALL_KINDS, Catalog
from broadgauge.catalog.check_gpus import TOLERANCE_RATIO, problems_of_gpu
from broadgauge.catalog.check_networks import (
    problems_of_busbw,
    problems_of_network,
    problems_of_node,
    problems_of_storage,
    problems_of_transport,
    unknown,
)
from broadgauge.catalog.constants import Constant
from broadgauge.catalog.entries import Entry, plain
from broadgauge.catalog.fits import Fit
from broadgauge.catalog.gpus import Gpu, MatrixProducts
from broadgauge.catalog.models import ModelEntry
from broadgauge.catalog.networks import NetworkClass, TransportPrior
from broadgauge.catalog.nodes import NodeEntry, PriceEntry
from broadgauge.catalog.references import BusbwFigure, StorageEntry
from broadgauge.catalog.widenings import Widening

SHORTEST_SOURCE = 10
"""Characters: less names nothing that a reader could find."""
_EARLIEST_YEAR = 1990


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogFault:
    """One thing that is wrong with one entry."""

    where: str
    """`mine.yaml:3:5`, or the shipped file."""
    kind: str
    name: str
    message: str

    def __str__(self) -> str:
        return f"{self.where}: {self.kind} `{self.name}`: {self.message}"


def check_catalog(
    catalog: Catalog, *, only_own: bool = False, today: date | None = None
) -> tuple[CatalogFault, ...]:
    """Every problem, by kind in the catalog's order; `only_own`: of the user's files alone.

    With `today`, dates that are still to come are problems too.
    """
    found = []
    for kind in ALL_KINDS:
        entries = catalog.entries(kind)
        own = frozenset(name for own_kind, name in catalog.places if own_kind == kind)
        twice = dict(_names_of_two(entries, own))
        for entry in entries:
            if only_own and (kind, entry.name) not in catalog.places:
                continue
            messages = [*_of_source(entry, today), *_of_kind(entry, catalog)]
            if entry.name in twice:
                messages.append(twice[entry.name])
            where = catalog.where(kind, entry)
            found += [
                CatalogFault(where=where, kind=kind, name=entry.name, message=message)
                for message in messages
            ]
    return tuple(found)


def _of_source(entry: Entry, today: date | None) -> Iterator[str]:
    if isinstance(entry, Fit | Widening):
        return  # generated: `fitted_on` says from what
    is_reference = isinstance(entry, Constant) and (entry.source or "").startswith("as ")
    if is_reference:
        pass  # another constant's source, which that one says
    elif entry.source is None or len(entry.source.strip()) < SHORTEST_SOURCE:
        yield "no source that a reader could find"
    if entry.date is None:
        aged = isinstance(entry, PriceEntry)
        yield "a price without a date: prices age" if aged else "no date"
    elif _is_no_date(entry.date, today):
        yield f"its date is {entry.date}"
    if isinstance(entry, Gpu) and entry.products is not None:
        yield from _of_products(entry.products, today)
    for key in entry.sources:
        if key not in type(entry).model_fields:
            yield f"`sources` names `{key}`, which is no figure of it"
    if not entry.fitted_on and "fitted" in (entry.source or "").lower():
        yield "its source says that it was fitted, and `fitted_on` does not say on what"


def _of_products(products: MatrixProducts, today: date | None) -> Iterator[str]:
    if len(products.source.strip()) < SHORTEST_SOURCE:
        yield "`products`: no source that a reader could find"
    if _is_no_date(products.date, today):
        yield f"`products`: their date is {products.date}"


def _is_no_date(text: str, today: date | None) -> bool:
    is_to_come = today is not None and text > today.isoformat()[: len(text)]
    return int(text[:4]) < _EARLIEST_YEAR or is_to_come


def _names_of_two(entries: Sequence[Entry], own: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Entries with an alias that another has too: the first is found, by accident.

    A user's own entry that takes a shipped one's alias does so on purpose.
    """
    owner: dict[str, str] = {}
    for entry in entries:
        for name in map(plain, entry.names()):
            first = owner.setdefault(name, entry.name)
            if first != entry.name and (first in own) == (entry.name in own):
                yield entry.name, f"`{name}` is a name of `{first}` too"


def _of_kind(entry: Entry, catalog: Catalog) -> Iterator[str]:
    match entry:
        case Gpu():
            yield from problems_of_gpu(entry)
        case TransportPrior():
            yield from problems_of_transport(entry)
        case NetworkClass():
            yield from problems_of_network(entry)
        case NodeEntry():
            yield from problems_of_node(entry, catalog)
        case ModelEntry():
            yield from _of_model(entry)
        case StorageEntry():
            yield from problems_of_storage(entry)
        case PriceEntry():
            yield from _of_price(entry, catalog)
        case BusbwFigure():
            yield from problems_of_busbw(entry, catalog)
        case Constant():
            if not entry.low <= entry.value <= entry.high:
                yield f"{entry.value:g} is not between {entry.low:g} and {entry.high:g}"
        case Fit():
            yield from _of_fit(entry, catalog)
        case Widening():
            yield from _of_widening(entry)


def _of_model(model: ModelEntry) -> Iterator[str]:
    published = model.published_params
    ratio = 1.0 if published is None else model.params / published
    if published is not None and abs(ratio - 1) > TOLERANCE_RATIO:
        yield (
            f"{model.params / 1e9:.4g} × 10⁹ parameters follow from its shape, "
            f"{published / 1e9:.4g} are published ({ratio - 1:+.1%})"
        )
    active = model.published_active_params
    if active is not None:
        high = model.active_params * (1 + TOLERANCE_RATIO)
        low = (model.active_params - 2 * model.embedding_params) * (1 - TOLERANCE_RATIO)
        if not low <= active <= high:
            yield (
                f"{model.active_params / 1e9:.4g} × 10⁹ active parameters follow from its shape, "
                f"embeddings included; {active / 1e9:.4g} are published"
            )
    if model.architecture == "moe" and published is not None and active is None:
        yield "a mixture of experts without `published_active_params`"


def _of_fit(fit: Fit, catalog: Catalog) -> Iterator[str]:
    """Fitted constants stay within their bounds, and say on what they were fitted."""
    if not fit.fitted_on:
        yield "`fitted_on` does not say on what"
    if fit.without is not None and fit.without in fit.fitted_on:
        yield f"it was fitted on `{fit.without}`, which it leaves out"
    bounds = {constant.name: constant for constant in catalog.constants}
    for name, value in fit.constants.items():
        known = bounds.get(name)
        if known is None:
            yield f"no constant is named `{name}`"
        elif not known.low * (1 - 1e-9) <= value <= known.high * (1 + 1e-9):
            yield f"{name} {value:g} is not between {known.low:g} and {known.high:g}"


def _of_widening(widening: Widening) -> Iterator[str]:
    """Each of its sources can be scored without it."""
    if not widening.fitted_on:
        yield "`fitted_on` does not say on what"
    for source in widening.fitted_on:
        if source not in widening.without_ratio:
            yield f"no ratio without `{source}`"


def _of_price(price: PriceEntry, catalog: Catalog) -> Iterator[str]:
    if (price.node is None) == (price.gpu is None):
        yield "a price is of a `node` or of a `gpu`: one of the two"
        return
    share = price.price_usd_per_hour
    if price.node is not None:
        yield from unknown(catalog.node, price.node)
        node = next((each for each in catalog.nodes if each.name == price.node), None)
        share /= 1 if node is None else node.gpus_per_node
    else:
        yield from unknown(catalog.gpu, price.gpu or "")
    if not 0.02 <= share <= 60:
        yield f"{share:.3g} USD for an hour of one GPU"
