"""Storages and rows of storages, for tests."""

from hypothesis import strategies as st

from broadgauge.predict.storage.description import KnownValue, StorageModel, StreamRates
from broadgauge.specs.storage_rows import StorageRow

RATES = st.floats(0.01, 20)
BYTES = st.floats(1e6, 1e12)


def figure(value: float) -> KnownValue:
    return KnownValue(value=value, low=value / 2, high=value * 2, source="a test")


def storage(
    *,
    stream: float = 1.0,
    node: float = 2.0,
    latency_s: float = 0.001,
    gather: float = 0.5,
    staging: float = 2.0,
    upload: float | None = None,
    is_durable: bool = True,
    host: float = 2.0,
    host_s: float | None = None,
    at_once: int | None = None,
) -> StorageModel:
    rates = StreamRates(
        stream_gbyte_per_s=figure(stream), node_gbyte_per_s=figure(node), streams_at_once=at_once
    )
    return StorageModel(
        name="disk",
        read=rates,
        write=rates,
        request_latency_s=figure(latency_s),
        memory_gbyte_per_s=figure(4.0),
        load_host_s=None if host_s is None else figure(host_s),
        load_host_gbyte_per_s=figure(host),
        gather_gbyte_per_s=figure(gather),
        staging_gbyte_per_s=figure(staging),
        is_durable=is_durable,
        is_write_back=upload is not None,
        upload_gbyte_per_s=None if upload is None else figure(upload),
    )


def row(phase: str, variant: str, **facts: object) -> StorageRow:
    return StorageRow.model_validate({"phase": phase, "variant": variant, **facts})
