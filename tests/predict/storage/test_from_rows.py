"""Proves predict/storage/from_rows.py: what rows of a known storage say of it, and no more."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.predict.storage.making_storages import row

from broadgauge.predict.storage import priors
from broadgauge.predict.storage.from_rows import MeasuredOn, of_rows
from broadgauge.predict.storage.phases import LoadOrder, load_time
from broadgauge.specs.storage_rows import StorageRow

ON = MeasuredOn(name="nfs", nodes=2, ranks_per_node=4, is_durable=True, source="run-1, 3 trials")
RAW = (
    row("raw", "read", cache="cold", gbyte_per_s=4.0),
    row("raw", "write", gbyte_per_s=2.0),
)


def test_raw_rows_give_rates_and_latency() -> None:
    found = of_rows((*RAW, row("raw", "random-read", operation_p50_s=0.005)), ON)
    assert found is not None
    assert found.read.node_gbyte_per_s.value == pytest.approx(2)
    assert found.read.stream_gbyte_per_s.value == pytest.approx(0.5)
    assert found.write.of_streams(4).value == pytest.approx(1)
    assert found.request_latency_s.value == 0.005
    assert "run-1, 3 trials" in found.read.node_gbyte_per_s.source


@pytest.mark.parametrize("left_out", range(2))
def test_without_reads_or_writes_there_is_no_model(left_out: int) -> None:
    assert of_rows([each for i, each in enumerate(RAW) if i != left_out], ON) is None


def test_a_failed_row_says_nothing() -> None:
    broken = row("raw", "read", cache="cold", gbyte_per_s=4.0, problem="the disk is full")
    assert of_rows((broken, RAW[1]), ON) is None


def test_what_was_warm_is_the_memorys_rate_and_never_the_storages() -> None:
    warm = row("raw", "read", cache="warm", gbyte_per_s=40.0)
    found = of_rows((*RAW, warm), ON)
    assert found is not None
    assert found.read.node_gbyte_per_s.value == pytest.approx(2)
    assert found.memory_gbyte_per_s.value == pytest.approx(5)
    assert of_rows((warm, RAW[1]), ON) is None


def test_phases_give_their_own_parts() -> None:
    size = 8_000_000_000
    load = row(
        "model_loading",
        "safetensors, every-rank",
        num_bytes=size,
        parts_s={"read": 9, "deserialise": 1, "to_device": 1},
    )
    save = row(
        "checkpoint_saving",
        "dcp, sharded",
        num_bytes=size,
        wait_s=9.0,
        durable_s=9.0,
        parts_s={"gather": 1, "serialise": 4, "write": 4},
    )
    staged = row("checkpoint_saving", "dcp-async, sharded", num_bytes=size, wait_s=0.5)
    found = of_rows((*RAW, load, save, staged), ON)
    assert found is not None
    assert found.load_host_gbyte_per_s.value == pytest.approx(8 / 8 / 2)
    assert found.gather_gbyte_per_s.value == pytest.approx(8 / 8 / 5)
    assert found.staging_gbyte_per_s.value == pytest.approx(8 / 8 / 0.5)
    assert not found.is_write_back


def test_a_save_that_returns_long_before_it_is_durable_went_into_a_cache() -> None:
    lie = row(
        "checkpoint_saving", "torch, sharded", num_bytes=8_000_000_000, wait_s=1.0, durable_s=41.0
    )
    found = of_rows((*RAW, lie), ON)
    assert found is not None
    assert found.is_write_back
    assert found.upload_gbyte_per_s is not None
    assert found.upload_gbyte_per_s.value == pytest.approx(8 / 2 / 40)


def test_what_no_row_tells_is_a_classs_and_wider_than_what_one_does() -> None:
    found = of_rows(RAW, ON)
    assert found is not None
    assert found.gather_gbyte_per_s is priors.GATHER_GBYTE_PER_S
    told = found.read.node_gbyte_per_s
    assert told.high / told.low < priors.GATHER_GBYTE_PER_S.high / priors.GATHER_GBYTE_PER_S.low


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=6))
def test_all_trials_lie_in_the_interval(rates: list[float]) -> None:
    rows: list[StorageRow] = [
        row("raw", "read", cache="cold", gbyte_per_s=2 * rate) for rate in rates
    ]
    found = of_rows((*rows, RAW[1]), ON)
    assert found is not None
    told = found.read.node_gbyte_per_s
    assert told.low <= min(rates) * (1 + 1e-9)
    assert told.high >= max(rates) * (1 - 1e-9)
    assert told.low < told.value < told.high


def test_a_load_of_a_known_storage_is_found_again() -> None:
    """Two nodes whose ranks each read a copy: 2 GB/s a node, 1 s of the host."""
    size = 4_000_000_000
    parts_s = {"read": 2, "deserialise": 1}
    load = row("model_loading", "safetensors, every-rank", num_bytes=8 * size, parts_s=parts_s)
    found = of_rows((*RAW, row("raw", "random-read", operation_p50_s=1e-6), load), ON)
    assert found is not None
    again = load_time(found, LoadOrder(num_bytes=size, streams=4))
    assert again.time_s.value == pytest.approx(3.0, rel=1e-3)


def test_one_copy_that_is_sent_on_is_all_of_the_bytes() -> None:
    size = 4_000_000_000
    parts_s = {"read": 2, "broadcast": 4}
    load = row("model_loading", "torch, rank0-broadcast", num_bytes=size, parts_s=parts_s)
    found = of_rows((*RAW, load), ON)
    assert found is not None
    assert found.load_host_gbyte_per_s.value == pytest.approx(1.0)


def test_a_write_is_as_fast_as_its_writer_waits_and_not_until_it_is_durable() -> None:
    cached = row("raw", "write", num_bytes=8_000_000_000, wait_s=1.0, gbyte_per_s=0.2)
    found = of_rows((RAW[0], cached), ON)
    assert found is not None
    assert found.write.node_gbyte_per_s.value == pytest.approx(8 / 2)
