"""What do measured phases say of a storage? Raw rows give rates and latency, phases the rest.

What no row tells is a class's (priors.py). A phase's row gives its own part alone: no rate is
fitted to a save or to a load.
"""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from broadgauge.predict.storage import priors
from broadgauge.predict.storage.description import KnownValue, StorageModel, StreamRates
from broadgauge.specs.storage_rows import StorageRow

LEAST_SPREAD_RATIO = 1.1
"""Of what was measured, however near its repeats are: of another day nothing is known."""
ONE_TRIAL_SPREAD_RATIO = 1.3
BEYOND_SPREAD_RATIO = 1.5
"""Of a node's rate with more streams than were measured: it may be the streams' limit."""
LATE_RATIO = 1.5
"""A foreground save that is durable so much later than it returned went into a cache."""
HOST_PARTS = ("deserialise", "broadcast", "to_device")
GATHER_PARTS = ("gather", "device_to_host", "serialise")
STAGED = "dcp-async"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredOn:
    """Where rows were measured."""

    name: str
    nodes: int
    ranks_per_node: int
    is_durable: bool
    source: str
    """`run nfs-20261125, 3 trials`."""

    @property
    def ranks(self) -> int:
        return self.nodes * self.ranks_per_node


def of_rows(rows: Sequence[StorageRow], on: MeasuredOn) -> StorageModel | None:
    """All trials' rows of one storage; None: they don't tell what it reads and writes."""
    good = [row for row in rows if not row.problem]
    read = _rates(_reads(good), on)
    write = _rates(_raw(good, "write"), on)
    if read is None or write is None:
        return None
    latency = _figure(
        (row.operation_p50_s for row in _raw(good, "random-read") if row.cache != "warm"), on
    )
    warm = [row for row in _raw(good, "read") if row.cache == "warm"]
    memory = _figure((_of_rank(row, on) for row in warm), on)
    saves = [row for row in good if row.phase == "checkpoint_saving"]
    upload = _upload(saves, on)
    return StorageModel(
        name=on.name,
        read=read,
        write=write,
        request_latency_s=latency or priors.LATENCY_S,
        memory_gbyte_per_s=memory or priors.MEMORY_GBYTE_PER_S,
        load_host_gbyte_per_s=_host(good, on) or priors.LOAD_HOST_GBYTE_PER_S,
        gather_gbyte_per_s=_gather(saves, on) or priors.GATHER_GBYTE_PER_S,
        staging_gbyte_per_s=_staging(saves, on) or priors.STAGING_GBYTE_PER_S,
        is_durable=on.is_durable,
        is_write_back=upload is not None,
        upload_gbyte_per_s=upload,
        source=on.source,
    )


def _raw(rows: Sequence[StorageRow], access: str) -> list[StorageRow]:
    return [row for row in rows if row.phase == "raw" and row.variant.split(",")[0] == access]


def _reads(rows: Sequence[StorageRow]) -> list[StorageRow]:
    """Proven cold; where none is, those whose cache is not known: never what was warm."""
    reads = _raw(rows, "read")
    cold = [row for row in reads if row.cache == "cold"]
    return cold or [row for row in reads if row.cache != "warm"]


def _rates(rows: Sequence[StorageRow], on: MeasuredOn) -> StreamRates | None:
    """One stream a rank was measured: of the node as many together."""
    node = _figure((_of_node(row, on) for row in rows), on)
    if node is None:
        return None
    stream = node.times(1 / on.ranks_per_node)
    if on.ranks_per_node > 1:
        return StreamRates(
            stream_gbyte_per_s=KnownValue(
                value=stream.value, low=stream.low, high=node.high, source=stream.source
            ),
            node_gbyte_per_s=node,
        )
    high = node.high * BEYOND_SPREAD_RATIO
    return StreamRates(
        stream_gbyte_per_s=stream,
        node_gbyte_per_s=KnownValue(value=node.value, low=node.low, high=high, source=node.source),
    )


def _of_node(row: StorageRow, on: MeasuredOn) -> float | None:
    """Of a write by what its writer waited: the rate of the row counts until it is durable."""
    if row.cache is None and row.wait_s and row.num_bytes:
        return _over(row, row.wait_s, on.nodes)
    return None if row.gbyte_per_s is None else row.gbyte_per_s / on.nodes


def _of_rank(row: StorageRow, on: MeasuredOn) -> float | None:
    return None if row.gbyte_per_s is None else row.gbyte_per_s / on.ranks


def _host(rows: Sequence[StorageRow], on: MeasuredOn) -> KnownValue | None:
    """Of loads whose parts are told, one copy's bytes over what was not reading."""
    loads = [row for row in rows if row.phase == "model_loading"]
    return _figure((_over_parts(row, HOST_PARTS, _copies(row, on)) for row in loads), on)


def _copies(row: StorageRow, on: MeasuredOn) -> int:
    """Of the model that were read: one by each rank, or by rank 0, which sends it on."""
    return on.ranks if "every-rank" in row.variant else 1


def _gather(saves: Sequence[StorageRow], on: MeasuredOn) -> KnownValue | None:
    """Of the slowest rank's parts, its share of the bytes over them."""
    return _figure((_over_parts(row, GATHER_PARTS, _savers(row, on)) for row in saves), on)


def _staging(saves: Sequence[StorageRow], on: MeasuredOn) -> KnownValue | None:
    staged = [row for row in saves if row.variant.startswith(STAGED)]
    return _figure((_over(row, row.wait_s, _savers(row, on)) for row in staged), on)


def _upload(saves: Sequence[StorageRow], on: MeasuredOn) -> KnownValue | None:
    """Of foreground saves that were durable long after they had returned."""
    foreground = [row for row in saves if not row.variant.startswith(STAGED)]

    def rate(row: StorageRow) -> float | None:
        if row.durable_s is None or row.wait_s is None or row.wait_s <= 0:
            return None
        if row.durable_s < LATE_RATIO * row.wait_s:
            return None
        return _over(row, row.durable_s - row.wait_s, on.nodes)

    return _figure(map(rate, foreground), on)


def _savers(row: StorageRow, on: MeasuredOn) -> int:
    """One rank saves all where the variant does not say `sharded`."""
    return on.ranks if "sharded" in row.variant else 1


def _over_parts(row: StorageRow, parts: Sequence[str], shares: int) -> float | None:
    told = [row.parts_s[name] for name in parts if name in row.parts_s]
    return _over(row, sum(told), shares) if told else None


def _over(row: StorageRow, seconds: float | None, shares: int) -> float | None:
    if not seconds or seconds < 0 or not row.num_bytes:
        return None
    return row.num_bytes / shares / seconds / 1e9


def _figure(values: Iterable[float | None], on: MeasuredOn) -> KnownValue | None:
    """The median of trials, from the least to the most of them and no narrower than a class."""
    found = sorted(value for value in values if value is not None and value > 0)
    if not found:
        return None
    middle = statistics.median(found)
    spread = LEAST_SPREAD_RATIO if len(found) > 1 else ONE_TRIAL_SPREAD_RATIO
    return KnownValue(
        value=middle,
        low=min(found[0], middle / spread),
        high=max(found[-1], middle * spread),
        source=f"measured, {on.source}",
    )
