"""What is known, the user's own files included? Their entries come before the shipped ones."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from broadgauge.catalog.constants import Constant, known_constants
from broadgauge.catalog.entries import Entry, find_entry, is_alike, plain
from broadgauge.catalog.fabrics import FabricProfile, known_fabrics
from broadgauge.catalog.fits import Fit, known_fits
from broadgauge.catalog.frameworks import Framework, known_frameworks
from broadgauge.catalog.gpus import Gpu, known_gpus
from broadgauge.catalog.model_configs import is_config_path, read_model
from broadgauge.catalog.models import ModelEntry, known_models
from broadgauge.catalog.networks import (
    NetworkClass,
    TransportPrior,
    find_network,
    known_networks,
    known_transports,
)
from broadgauge.catalog.nodes import NodeEntry, PriceEntry, known_nodes, known_prices
from broadgauge.catalog.reading import MODELS, Read, read_entries
from broadgauge.catalog.references import (
    BusbwFigure,
    StorageEntry,
    known_busbw,
    known_storage,
)
from broadgauge.catalog.widenings import Widening, known_widenings
from broadgauge.specs.errors import InputError

ALL_KINDS = (*MODELS, "fabrics", "frameworks", "constants", "fitted", "widenings")
"""No user's file has the last five: the last four are the predictor's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPrice:
    """What an hour of one GPU costs, and which entry says so."""

    price_usd_per_hour: float
    price: PriceEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """A shipped entry in whose place stands one of the user's."""

    kind: str
    name: str
    filename: str
    where: str
    """`mine.yaml:3:5`."""

    def __str__(self) -> str:
        return f"{self.where}: {self.kind} `{self.name}` replaces the shipped entry"


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """Every entry, by kind."""

    gpus: tuple[Gpu, ...]
    transports: tuple[TransportPrior, ...]
    networks: tuple[NetworkClass, ...]
    nodes: tuple[NodeEntry, ...]
    models: tuple[ModelEntry, ...]
    storage: tuple[StorageEntry, ...]
    prices: tuple[PriceEntry, ...]
    busbw: tuple[BusbwFigure, ...]
    fabrics: tuple[FabricProfile, ...]
    frameworks: tuple[Framework, ...]
    constants: tuple[Constant, ...]
    fitted: tuple[Fit, ...]
    widenings: tuple[Widening, ...]
    replaced: tuple[Replaced, ...] = ()
    """Shipped entries that are not used, as the user's files have others of their names."""
    places: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Where a user's entry stands, by kind and name."""

    def entries(self, kind: str) -> tuple[Entry, ...]:
        """All of one kind (`gpus`, `networks`, …)."""
        entries: tuple[Entry, ...] = getattr(self, kind)
        return entries

    def gpu(self, name: str) -> Gpu:
        """Raises InputError with what was meant."""
        return find_entry(name, self.gpus, "gpu")

    def network(self, name: str) -> NetworkClass:
        """By name, or as `roce-400g*8`. Raises InputError with what was meant."""
        return find_network(name, self.networks, self.transports)

    def node(self, name: str) -> NodeEntry:
        """Raises InputError with what was meant."""
        return find_entry(name, self.nodes, "node")

    def model(self, name: str) -> ModelEntry:
        """By name, or of a Hugging Face file (`llama/config.json`). Raises InputError with what was
        meant."""
        if is_config_path(name):
            return read_model(Path(name))
        return find_entry(name.rsplit("/", 1)[-1], self.models, "model")

    def storage_named(self, name: str) -> StorageEntry:
        """Raises InputError with what was meant."""
        return find_entry(name, self.storage, "storage")

    def gpu_price(self, gpu: str, node: str | None = None) -> GpuPrice | None:
        """What an hour of one GPU costs: of this node, else the lowest of any with this GPU, where
        the user's own files have prices of it the lowest of those.

        None: not known. Raises InputError for a GPU or node that nobody knows.
        """
        wanted = self.gpu(gpu).name
        prices = list(self._gpu_prices(wanted))
        of_node = None if node is None else self.node(node).name
        own = [each for each in prices if ("prices", each.price.name) in self.places]
        of_that = [each for each in prices if of_node is not None and each.price.node == of_node]
        prices = of_that or own or prices
        return min(prices, key=lambda each: each.price_usd_per_hour, default=None)

    def _gpu_prices(self, gpu: str) -> Iterator[GpuPrice]:
        num_gpus = {node.name: node.gpus_per_node for node in self.nodes if node.gpu == gpu}
        for price in self.prices:
            if price.node in num_gpus:
                share = price.price_usd_per_hour / num_gpus[price.node]
                yield GpuPrice(price_usd_per_hour=share, price=price)
            elif price.gpu == gpu:
                yield GpuPrice(price_usd_per_hour=price.price_usd_per_hour, price=price)

    def named(self, name: str) -> tuple[tuple[str, Entry], ...]:
        """Every entry of that name or alias, with its kind; else those of nearly that name.

        Raises InputError for a model's config.json that can't be read.
        """
        if is_config_path(name):
            return (("models", self.model(name)),)
        wanted = plain(name)
        entries = [(kind, entry) for kind in ALL_KINDS for entry in self.entries(kind)]
        exact = tuple(each for each in entries if wanted in map(plain, each[1].names()))
        return exact or tuple(each for each in entries if is_alike(name, each[1]))

    def where(self, kind: str, entry: Entry) -> str:
        """`mine.yaml:3:5`, the shipped file, or a model's config.json."""
        place = self.places.get((kind, entry.name), f"{kind}.yaml")
        is_listed = isinstance(entry, NetworkClass) or entry in self.entries(kind)
        return place if is_listed else entry.source or place

    def replaced_words(self) -> tuple[str, ...]:
        """A line a file: `mine.yaml replaces gpu h100-sxm, network pod of the catalog`."""
        by_file: dict[str, list[str]] = {}
        for each in self.replaced:
            names = by_file.setdefault(each.filename, [])
            names.append(f"{each.kind.removesuffix('s')} {each.name}")
        return tuple(
            f"{filename} replaces {', '.join(names)} of the catalog"
            for filename, names in by_file.items()
        )


def load_catalog(extra_files: Sequence[Path] = ()) -> Catalog:
    """What is shipped, and what these files add or replace, the later ones first.

    Raises InputError for a file that can't be read, ExperimentError with the place of what is
    wrong in it.
    """
    if not extra_files:
        return shipped_catalog()
    read = [each for path in extra_files for each in _read_file(path)]
    shipped = shipped_catalog()
    by_kind = {kind: _merged(kind, shipped.entries(kind), read) for kind in MODELS}
    return Catalog(
        gpus=cast("tuple[Gpu, ...]", by_kind["gpus"]),
        transports=cast("tuple[TransportPrior, ...]", by_kind["transports"]),
        networks=cast("tuple[NetworkClass, ...]", by_kind["networks"]),
        nodes=cast("tuple[NodeEntry, ...]", by_kind["nodes"]),
        models=cast("tuple[ModelEntry, ...]", by_kind["models"]),
        storage=cast("tuple[StorageEntry, ...]", by_kind["storage"]),
        prices=cast("tuple[PriceEntry, ...]", by_kind["prices"]),
        busbw=cast("tuple[BusbwFigure, ...]", by_kind["busbw"]),
        fabrics=shipped.fabrics,
        frameworks=shipped.frameworks,
        constants=shipped.constants,
        fitted=shipped.fitted,
        widenings=shipped.widenings,
        replaced=tuple(_replaced(shipped, read)),
        places={(each.kind, each.entry.name): each.where for each in read},
    )


@functools.cache
def shipped_catalog() -> Catalog:
    """Without any file of the user's."""
    return Catalog(
        gpus=known_gpus(),
        transports=known_transports(),
        networks=known_networks(),
        nodes=known_nodes(),
        models=known_models(),
        storage=known_storage(),
        prices=known_prices(),
        busbw=known_busbw(),
        fabrics=known_fabrics(),
        frameworks=known_frameworks(),
        constants=known_constants(),
        fitted=known_fits(),
        widenings=known_widenings(),
    )


def _read_file(path: Path) -> tuple[Read, ...]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InputError(f"the catalog {path} can't be read: {reason}") from error
    return read_entries(text, str(path))


def _merged(kind: str, shipped: Sequence[Entry], read: Sequence[Read]) -> tuple[Entry, ...]:
    """The user's first, so that their aliases are found first; of a name, the last file's."""
    own = {each.entry.name: each.entry for each in read if each.kind == kind}
    return (*reversed(own.values()), *(entry for entry in shipped if entry.name not in own))


def _replaced(shipped: Catalog, read: Sequence[Read]) -> Iterator[Replaced]:
    """Each once, where the last file has it."""
    for (kind, name), each in {(each.kind, each.entry.name): each for each in read}.items():
        if any(name == entry.name for entry in shipped.entries(kind)):
            yield Replaced(kind=kind, name=name, filename=each.filename, where=each.where)
