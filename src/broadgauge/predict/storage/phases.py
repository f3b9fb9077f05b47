"""How long does a training wait while it loads its model, saves a checkpoint, or loads batches?

Source of the three forms: what four storages of "Network and Storage Benchmarks for LLM Training on
the Cloud" (SkyPilot, 2025-09-11) show, and what they can't be without (docs/validation.md): a fixed
part, rates by the number of streams, time of operations.
"""

import math
from dataclasses import dataclass

from broadgauge.predict.prediction import Interval
from broadgauge.predict.storage.description import (
    StorageModel,
    Term,
    lasting,
    sum_of,
    transfer,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOrder:
    """A model's weights, as one node reads them."""

    num_bytes: float
    files: int = 1
    streams: int = 1
    """Files that are read beside each other."""
    cached_ratio: float = 0.0
    """Of the bytes, those that the node's memory has kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveOrder:
    """One checkpoint of all ranks."""

    num_bytes: float
    """Of all ranks together."""
    nodes: int = 1
    ranks_per_node: int = 1
    files_per_rank: int = 1
    is_sharded: bool = True
    """Each rank saves its part; false: one rank gathers and saves all of it."""
    is_async: bool = False
    work_between_s: float = math.inf
    """How long training computes between the end of a save's stall and the begin of the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOrder:
    """Batches of one rank, whose node has others that do the same."""

    batch_bytes: float
    """Of one rank and step."""
    requests: float = 1.0
    """That one batch takes, of files or ranges of them."""
    readers: int = 1
    """Ranks of a node that load."""
    workers: int = 2
    """Of each of them; 0: the rank itself reads, and nothing is loaded meanwhile."""
    step_s: float
    """What a step takes without waiting for data."""
    cached_ratio: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseTime:
    """How long one phase takes, and of what that is made."""

    terms: tuple[Term, ...]

    @property
    def time_s(self) -> Interval:
        return sum_of(self.terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveTime:
    """One save."""

    stall_s: Interval
    """How long training waits."""
    whole: PhaseTime
    """Until the last rank's write has returned."""
    durable_s: Interval | None
    """Until it outlives the node; None: `durable_words` say why that is not known."""
    durable_words: str
    least_stall_s: float
    """How long it would be, were no other save in its way."""
    is_waiting: bool
    """In the background: the save before is still under way when the next is due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchTime:
    """One rank's batches."""

    first_s: Interval
    """Until the first batch is there: nothing hides it."""
    every_s: Interval
    """How often a batch is ready."""
    stall_s: Interval
    """Of each step, once loaders run beside it."""
    loading: PhaseTime
    """Of one batch by one worker."""


def load_time(storage: StorageModel, order: LoadOrder) -> PhaseTime:
    """T = fixed + requests × latency / concurrency + bytes / bandwidth(streams)."""
    host = (
        transfer("host", order.num_bytes, storage.load_host_gbyte_per_s)
        if storage.load_host_s is None
        else lasting("host", storage.load_host_s)
    )
    read = _read(storage, order.num_bytes, order.files, order.streams, order.cached_ratio)
    return PhaseTime(terms=(host, *read))


def save_time(storage: StorageModel, order: SaveOrder) -> SaveTime:
    """T = gather(ranks, bytes) + max(bytes / node, bytes of a stream / stream × streams in turn)
    + operations × latency.

    In the background training waits for the staging copy alone, unless the save before is still
    under way: then for the rest of that, too. The write is as long as in the foreground.
    """
    streams = order.ranks_per_node if order.is_sharded else 1
    writers = order.nodes * streams
    rank_bytes = order.num_bytes / writers
    gather = transfer("gather and serialise", rank_bytes, storage.gather_gbyte_per_s)
    write = transfer("write", rank_bytes * streams, storage.write.of_streams(streams))
    operations = _requests(storage, rank_bytes, order.files_per_rank) / storage.requests_at_once
    latency = lasting("operations", storage.request_latency_s, operations)
    whole = PhaseTime(terms=(gather, write, latency))
    least_s = whole.time_s.value
    if order.is_async:
        staging = transfer("staging", rank_bytes, storage.staging_gbyte_per_s).time_s
        least_s = min(least_s, staging.value)
        stall_s, is_waiting = _stall_behind(whole.time_s, staging, order.work_between_s)
    else:
        stall_s, is_waiting = whole.time_s, False
    durable_s, words = _durable(storage, whole, rank_bytes * streams)
    return SaveTime(
        stall_s=stall_s,
        whole=whole,
        durable_s=durable_s,
        durable_words=words,
        least_stall_s=least_s,
        is_waiting=is_waiting,
    )


def batch_time(storage: StorageModel, order: BatchOrder) -> BatchTime:
    """Stall of a step = max(0, time to load a batch / workers − step).

    With prefetch, loaders run at their own pace beside the step: what counts is how often one of
    them is ready. Without workers the whole load is a stall.
    """
    workers = max(1, order.workers)
    streams = order.readers * workers
    one = order.batch_bytes * streams
    """All loaders of the node read at once; each waits for its share of the node's rate."""
    terms = _read(
        storage,
        one,
        order.requests * streams,
        streams,
        order.cached_ratio,
    )
    loading = PhaseTime(terms=terms)
    time_s = loading.time_s
    if order.workers == 0:
        return BatchTime(first_s=time_s, every_s=time_s, stall_s=time_s, loading=loading)
    every_s = Interval(
        value=time_s.value / workers, low=time_s.low / workers, high=time_s.high / workers
    )
    stall_s = Interval(
        value=max(0.0, every_s.value - order.step_s),
        low=max(0.0, every_s.low - order.step_s),
        high=max(0.0, every_s.high - order.step_s),
    )
    return BatchTime(first_s=time_s, every_s=every_s, stall_s=stall_s, loading=loading)


def _read(
    storage: StorageModel, num_bytes: float, files: float, streams: int, cached_ratio: float
) -> tuple[Term, ...]:
    """Of all streams together, each with its share of the requests.

    What memory keeps is read no slower than the storage would give it.
    """
    cold = num_bytes * (1 - cached_ratio)
    rate = storage.read.of_streams(streams)
    memory = storage.memory_gbyte_per_s.times(streams)
    memory = memory if memory.value >= rate.value else rate
    requests = _requests(storage, num_bytes, files) * (1 - cached_ratio)
    at_once = storage.requests_at_once * streams
    terms = (
        lasting("requests", storage.request_latency_s, requests / at_once),
        transfer("read", cold, rate),
    )
    if cached_ratio == 0:
        return terms
    return (*terms, transfer("read from memory", num_bytes * cached_ratio, memory))


def _requests(storage: StorageModel, num_bytes: float, files: float) -> float:
    """One a file at least."""
    if storage.request_bytes is None:
        return files
    return max(files, num_bytes / storage.request_bytes)


def _stall_behind(whole: Interval, staging: Interval, between_s: float) -> tuple[Interval, bool]:
    """The staging copy, and what of the save before is left when it is due."""

    def stall(whole_s: float, staging_s: float) -> float:
        staging_s = min(staging_s, whole_s)
        return staging_s + max(0.0, whole_s - staging_s - between_s)

    value = stall(whole.value, staging.value)
    interval = Interval(
        value=value,
        low=min(value, stall(whole.low, staging.low)),
        high=max(value, stall(whole.high, staging.high)),
    )
    return interval, whole.value - min(staging.value, whole.value) > between_s


def _durable(
    storage: StorageModel, whole: PhaseTime, node_bytes: float
) -> tuple[Interval | None, str]:
    if not storage.is_durable:
        return None, "it goes with the node"
    if not storage.is_write_back:
        return whole.time_s, ""
    if storage.upload_gbyte_per_s is None:
        return None, "writes end in a cache of the node, and nobody says how fast they leave it"
    upload = transfer("upload", node_bytes, storage.upload_gbyte_per_s)
    return sum_of((*whole.terms, upload)), ""
