"""What does an entry of the catalog, or of a user's file, say of a storage?"""

from broadgauge.catalog.references import StorageEntry
from broadgauge.predict.storage import priors
from broadgauge.predict.storage.description import KnownValue, StorageModel, StreamRates
from broadgauge.specs.errors import InputError


def of_entry(entry: StorageEntry) -> StorageModel:
    """What it does not say is a class's, and wide. Raises InputError: nobody states its rates."""
    if entry.read_gbyte_per_s is None or entry.write_gbyte_per_s is None:
        raise InputError(
            f"nobody says what {entry.name} reads and writes"
            + (f": {entry.note}" if entry.note else ""),
            hint="measure it with a `kind: storage` workload, or write an entry of your own "
            "(docs/catalog.md)",
        )
    source = entry.source or f"the entry `{entry.name}`"
    latency = priors.LATENCY_S
    if entry.request_latency_s is not None:
        spread = priors.NOMINAL_SPREAD_RATIO
        latency = KnownValue.around(entry.request_latency_s, spread, source)
    upload = entry.upload_gbyte_per_s
    return StorageModel(
        name=entry.name,
        read=_rates(entry, entry.read_gbyte_per_s, entry.read_stream_gbyte_per_s, source),
        write=_rates(entry, entry.write_gbyte_per_s, entry.write_stream_gbyte_per_s, source),
        request_latency_s=latency,
        requests_at_once=entry.requests_at_once or 1,
        request_bytes=entry.request_bytes,
        memory_gbyte_per_s=priors.MEMORY_GBYTE_PER_S,
        load_host_gbyte_per_s=priors.LOAD_HOST_GBYTE_PER_S,
        gather_gbyte_per_s=priors.GATHER_GBYTE_PER_S,
        staging_gbyte_per_s=priors.STAGING_GBYTE_PER_S,
        is_durable=entry.is_durable,
        is_write_back=entry.is_write_back,
        upload_gbyte_per_s=None
        if upload is None
        else KnownValue.around(upload, priors.NOMINAL_SPREAD_RATIO, source),
        source=source,
    )


def _rates(entry: StorageEntry, node: float, stream: float | None, source: str) -> StreamRates:
    """A rate that is stated for one stream says of several only what class figures do."""
    spread = priors.NOMINAL_SPREAD_RATIO
    stated = KnownValue.around(node, spread, source)
    if not entry.is_single_stream:
        one = stated if stream is None else KnownValue.around(stream, spread, source)
        return StreamRates(stream_gbyte_per_s=one, node_gbyte_per_s=stated)
    many = priors.MANY_STREAMS
    together = KnownValue(
        value=node * many.value,
        low=node * many.low,
        high=node * many.high,
        source=f"{source}; {many.source}",
    )
    return StreamRates(stream_gbyte_per_s=stated, node_gbyte_per_s=together)
