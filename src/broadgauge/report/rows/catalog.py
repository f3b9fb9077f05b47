"""Which columns has a list of the catalog? One row an entry, by kind."""

from collections.abc import Callable, Mapping, Sequence

from broadgauge.catalog.catalog import Catalog
from broadgauge.catalog.constants import Constant
from broadgauge.catalog.entries import Entry
from broadgauge.catalog.fabrics import FabricProfile
from broadgauge.catalog.frameworks import Framework
from broadgauge.catalog.gpus import Gpu
from broadgauge.catalog.models import ModelEntry
from broadgauge.catalog.networks import NetworkClass, TransportPrior
from broadgauge.catalog.nodes import NodeEntry, PriceEntry
from broadgauge.catalog.references import BusbwFigure, StorageEntry
from broadgauge.catalog.widenings import Widening
from broadgauge.specs.units import show_size, show_time

NONE = "–"


def carried_words(network: NetworkClass) -> str:
    """`40 (22.5 to 48.5)`: 10^9 byte/s of a whole node."""
    carried = network.carried()
    low, high = carried.low_gbyte_per_s, carried.high_gbyte_per_s
    return f"{carried.gbyte_per_s:.3g} ({low:.3g} to {high:.3g})"


def _or_none(value: float | None) -> str:
    return NONE if value is None else f"{value:,.4g}"


def _gpu(entry: Entry, _: Catalog) -> tuple[str, ...]:
    assert isinstance(entry, Gpu)
    peaks, links = entry.peaks, entry.nvlink
    return (
        entry.name,
        _or_none(peaks.fp32_tflops),
        _or_none(peaks.bf16_tflops or peaks.fp16_tflops),
        _or_none(peaks.fp8_tflops),
        str(entry.memory_gib),
        f"{entry.memory_gbyte_per_s:,.4g}",
        NONE if links is None else f"{links.gbyte_per_s:.4g}",
    )


def _network(entry: Entry, _: Catalog) -> tuple[str, ...]:
    assert isinstance(entry, NetworkClass)
    return (
        entry.name,
        entry.transport,
        _or_none(entry.node_nominal_gbps),
        carried_words(entry),
        show_time(entry.latency_s.value),
    )


def _transport(entry: Entry, _: Catalog) -> tuple[str, ...]:
    assert isinstance(entry, TransportPrior)
    ratio, typical = entry.typical_ratio, entry.typical_gbyte_per_s
    ring = entry.ring(None)
    return (
        entry.name,
        NONE if ratio is None else f"{ratio.value:g} ({ratio.low:g} to {ratio.high:g})",
        NONE if typical is None else f"{typical.value:g} ({typical.low:g} to {typical.high:g})",
        NONE if ring is None else f"{ring.value:g} ({ring.low:g} to {ring.high:g})",
        show_time(entry.latency_s.value),
    )


def _node(entry: Entry, _: Catalog) -> tuple[str, ...]:
    assert isinstance(entry, NodeEntry)
    first = entry.networks[0] if entry.networks else NONE
    gpus = f"{entry.gpus_per_node} × {entry.gpu}"
    return (entry.name, gpus, first, _or_none(entry.node_gbps))


def _model(entry: Entry, _: Catalog) -> tuple[str, ...]:
    assert isinstance(entry, ModelEntry)
    active = f"{entry.active_params / 1e9:.4g}" if entry.experts > 1 else NONE
    return (
        entry.name,
        f"{entry.params / 1e9:.4g}",
        active,
        str(entry.layers),
        f"{entry.hidden:,}",
        f"{entry.vocabulary:,}",
        f"{entry.seq_len:,}",
    )


def _storage(entry: Entry, _: Catalog) -> tuple[str, ...]:
    assert isinstance(entry, StorageEntry)
    bound = "at least " if entry.is_lower_bound else ""
    return (
        entry.name,
        f"{bound}{entry.read_gbyte_per_s:g}",
        f"{bound}{entry.write_gbyte_per_s:g}",
        "yes" if entry.is_durable else "no",
    )


def _price(entry: Entry, catalog: Catalog) -> tuple[str, ...]:
    assert isinstance(entry, PriceEntry)
    node = next((each for each in catalog.nodes if each.name == entry.node), None)
    share = entry.price_usd_per_hour / (1 if node is None else node.gpus_per_node)
    gpu = entry.gpu if node is None else node.gpu
    whole = NONE if entry.node is None else f"{entry.price_usd_per_hour:.2f}"
    return (entry.name, gpu or NONE, whole, f"{share:.2f}", entry.date or "no date")


def _busbw(entry: Entry, _: Catalog) -> tuple[str, ...]:
    assert isinstance(entry, BusbwFigure)
    size = NONE if entry.message_bytes is None else show_size(entry.message_bytes)
    return (
        entry.name,
        f"{entry.nodes} × {entry.gpus_per_node}",
        entry.network or ("NVLink, NVLS" if entry.is_nvls else "NVLink"),
        size,
        f"{entry.busbw_gbyte_per_s:g}",
    )


def _fabric(entry: Entry, _: Catalog) -> tuple[str, ...]:
    assert isinstance(entry, FabricProfile)
    beside = None if entry.daemon is None else entry.daemon.name
    return (entry.name, entry.transport, entry.attaches, entry.resource or NONE, beside or NONE)


def _framework(entry: Entry, _: Catalog) -> tuple[str, ...]:
    assert isinstance(entry, Framework)
    reduced = NONE if entry.gradient_bytes is None else str(entry.gradient_bytes)
    return (entry.name, entry.style, "yes" if entry.overlaps_gradients else "no", reduced)


def _constant(entry: Entry, catalog: Catalog) -> tuple[str, ...]:
    assert isinstance(entry, Constant)
    fit = next((fit for fit in catalog.fitted if fit.without is None), None)
    fitted = None if fit is None else fit.constants.get(entry.name)
    return (
        entry.name,
        f"{entry.value:.4g}",
        f"{entry.low:.4g} to {entry.high:.4g}",
        "a fact" if not entry.is_fitted else _or_none(fitted),
    )


def _widening(entry: Entry, _: Catalog) -> tuple[str, ...]:
    assert isinstance(entry, Widening)
    sources = str(len(entry.fitted_on))
    return (entry.name, f"{entry.width_ratio:.3g}", str(entry.rows), sources)


_Cells = Callable[[Entry, Catalog], Sequence[str]]
TABLES: Mapping[str, tuple[Sequence[str], _Cells]] = {
    "gpus": (
        (
            "",
            "fp32\nTFLOP/s",
            "16 bit\nTFLOP/s",
            "fp8\nTFLOP/s",
            "memory\nGiB",
            "memory\nGB/s",
            "links\nGB/s",
        ),
        _gpu,
    ),
    "networks": (("", "transport", "node\nGbit/s", "carries\nGB/s", "latency"), _network),
    "transports": (
        ("", "of nominal", "of an interface\nGB/s", "a ring\nGB/s", "latency"),
        _transport,
    ),
    "nodes": (("", "GPUs", "network", "Gbit/s"), _node),
    "models": (
        ("", "parameters\n10⁹", "active\n10⁹", "layers", "hidden", "vocabulary", "tokens"),
        _model,
    ),
    "storage": (("", "read\nGB/s", "write\nGB/s", "durable"), _storage),
    "prices": (("", "GPU", "node\nUSD/h", "GPU\nUSD/h", "read"), _price),
    "fabrics": (("", "transport", "NICs by", "resource", "beside ranks"), _fabric),
    "frameworks": (("", "style", "overlaps\ngradients", "bytes\nreduced"), _framework),
    "constants": (("", "start", "bounds", "fitted"), _constant),
    "widenings": (("", "times", "rows", "sources"), _widening),
    "busbw": (("", "nodes × GPUs", "over", "size", "busbw\nGB/s"), _busbw),
}
