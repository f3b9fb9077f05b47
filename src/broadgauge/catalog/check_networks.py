"""Which figures of networks, nodes, storages and published busbw contradict physics or another?"""

from collections.abc import Callable, Iterator

from broadgauge.catalog.catalog import Catalog
from broadgauge.catalog.entries import Entry, EntryType, Spread
from broadgauge.catalog.networks import NetworkClass, TransportPrior
from broadgauge.catalog.nodes import NodeEntry
from broadgauge.catalog.references import BusbwFigure, StorageEntry
from broadgauge.specs.errors import InputError

FASTEST_NIC_GBPS = 1600
"""Of one NIC. Source: 1.6 Tbit/s Ethernet (IEEE 802.3dj) is the fastest port there is."""
SLOWEST_NIC_GBPS = 0.1
_LATENCY_S = (0.5e-6, 20e-3)
"""Light needs 5 ns a metre and a NIC half a microsecond; 20 ms is another continent."""
_ROUNDING_RATIO = 0.01


def problems_of_transport(prior: TransportPrior) -> Iterator[str]:
    """One line for each contradiction."""
    yield from _of_ratio(prior.typical_ratio)
    yield from _of_ratio(prior.healthy_ratio)
    yield from _of_latency(prior.latency_s)
    for ring in prior.rings:
        most = ring.up_to_gbps / 8
        if ring.high > most * (1 + _ROUNDING_RATIO):
            yield f"a ring of {ring.high:g} GB/s over {ring.up_to_gbps:g} Gbit/s, {most:g} GB/s"


def problems_of_network(network: NetworkClass) -> Iterator[str]:
    """One line for each contradiction."""
    yield from _of_ratio(network.typical_ratio)
    yield from _of_latency(network.latency_s)
    nominal = network.nominal_gbps
    if nominal is None:
        return
    if not SLOWEST_NIC_GBPS <= nominal <= FASTEST_NIC_GBPS:
        yield (
            f"{nominal:g} Gbit/s for one NIC: `nominal_gbps` is of one NIC, 10^9 bit/s; "
            "`nics` says how many"
        )
    typical = network.typical_gbyte_per_s
    if typical is not None and typical.high > nominal / 8 * (1 + _ROUNDING_RATIO):
        yield (
            f"typical {typical.high:g} GB/s is above nominal, {nominal:g} Gbit/s = "
            f"{nominal / 8:g} GB/s"
        )


def _of_ratio(ratio: Spread | None) -> Iterator[str]:
    if ratio is not None and ratio.high > 1:
        yield f"typical {ratio.high:g} of nominal is above nominal"


def _of_latency(latency: Spread) -> Iterator[str]:
    low, high = _LATENCY_S
    if latency.low < low or latency.high > high:
        yield f"a latency of {latency.low:g} to {latency.high:g} s; in seconds?"


def problems_of_node(node: NodeEntry, catalog: Catalog) -> Iterator[str]:
    """One line for each contradiction."""
    yield from unknown(catalog.gpu, node.gpu)
    for name in node.networks:
        yield from unknown(catalog.network, name)
    if node.node_gbps is None or not node.networks:
        return
    network = _found(catalog.network, node.networks[0])
    gpu = _found(catalog.gpu, node.gpu)
    if network is not None and network.node_nominal_gbps is not None:
        nics = network.node_nominal_gbps
        if abs(node.node_gbps / nics - 1) > _ROUNDING_RATIO:
            yield (
                f"{node.node_gbps:g} Gbit/s a node, and {network.nics} NICs of "
                f"{network.nominal_gbps:g} are {nics:g} ({node.networks[0]})"
            )
    if gpu is not None:
        slots = gpu.pcie_gbyte_per_s * 8 * max(node.gpus_per_node, 2)
        if node.node_gbps > slots * 1.1:
            yield f"{node.node_gbps:g} Gbit/s a node is more than its PCIe carries, {slots:.4g}"
        boards = [] if gpu.nvlink is None else [board.gpus for board in gpu.nvlink.boards]
        if node.nvlink_gpus is not None and node.nvlink_gpus > max(boards, default=1):
            yield f"NVLink of {node.nvlink_gpus} GPUs: {gpu.name} has boards of {boards}"


def problems_of_storage(storage: StorageEntry) -> Iterator[str]:
    """One line for each contradiction."""
    for key in ("read_gbyte_per_s", "write_gbyte_per_s"):
        rate = getattr(storage, key)
        if rate is not None and not 1e-4 <= rate <= 1000:
            yield f"`{key}` is {rate:g}: 10^9 byte/s of one node?"
    read, write = storage.read_gbyte_per_s, storage.write_gbyte_per_s
    if read is not None and write is not None and write > 4 * read:
        yield "it writes more than four times as fast as it reads: are they swapped?"


def problems_of_busbw(figure: BusbwFigure, catalog: Catalog) -> Iterator[str]:
    """One line for each contradiction."""
    yield from unknown(catalog.gpu, figure.gpu)
    if figure.network is not None:
        yield from unknown(catalog.network, figure.network)
    limit = busbw_limit_gbyte_per_s(figure, catalog)
    if limit is not None and figure.busbw_gbyte_per_s > limit * (1 + _ROUNDING_RATIO):
        yield (
            f"{figure.busbw_gbyte_per_s:g} GB/s is more than its links carry, {limit:.4g}: "
            "both directions, bits, or another definition?"
        )


def busbw_limit_gbyte_per_s(figure: BusbwFigure, catalog: Catalog) -> float | None:
    """The highest busbw that the links allow; None: they are not known.

    In one node a GPU's NVLinks, times 2(n−1)/(n+1) with NVLS (see paths.py). Between k nodes an
    all-reduce sends at least 2(k−1)/k of its size out of each, where busbw counts 2(n−1)/n of it;
    other collectives of n ranks as many as (k−1)/k and (n−1)/n. Source: Patarasuk and Yuan 2009
    (bandwidth-optimal all-reduce), between nodes; switches that add up (SHARP) are left out.
    """
    gpu = _found(catalog.gpu, figure.gpu)
    n, k = figure.ranks, figure.nodes
    if figure.network is None:
        if gpu is None or gpu.nvlink is None:
            return None if gpu is None else gpu.pcie_gbyte_per_s
        switched = max(1.0, 2 * (n - 1) / (n + 1)) if figure.is_nvls else 1.0
        return gpu.nvlink.gbyte_per_s * switched
    network = _found(catalog.network, figure.network)
    if network is None or network.node_nominal_gbps is None:
        return None
    node = network.node_nominal_gbps / 8
    if figure.op in ("broadcast", "reduce", "send_recv"):
        return node
    return node * ((n - 1) / n) / ((k - 1) / k)


def unknown(find: Callable[[str], Entry], name: str) -> Iterator[str]:
    """A line where nothing has that name."""
    try:
        find(name)
    except InputError as error:
        yield error.message if error.hint is None else f"{error.message} ({error.hint})"


def _found(find: Callable[[str], EntryType], name: str) -> EntryType | None:
    try:
        return find(name)
    except InputError:
        return None
