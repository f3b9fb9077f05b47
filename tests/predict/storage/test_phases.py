"""Proves predict/storage/phases.py: its forms by hand, and the laws that any storage obeys."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.predict.storage.making_storages import BYTES, RATES, storage

from broadgauge.predict.storage.phases import (
    BatchOrder,
    LoadOrder,
    SaveOrder,
    batch_time,
    load_time,
    save_time,
)

FACTORS = st.floats(1, 10)
STREAMS = st.integers(1, 16)
LATENCIES = st.floats(0, 1)
BOTH = st.tuples(RATES, RATES)
"""Of a stream, and of the node."""
ROUNDING = 1 + 1e-9


def loads_s(order: LoadOrder, **facts: float) -> float:
    return load_time(storage(**facts), order).time_s.value  # type: ignore[arg-type]


def saves(order: SaveOrder, **facts: float) -> tuple[float, float]:
    """Stall, and time to durable."""
    found = save_time(storage(**facts), order)  # type: ignore[arg-type]
    assert found.durable_s is not None
    return found.stall_s.value, found.durable_s.value


def batch_stall_s(order: BatchOrder, **facts: float) -> float:
    return batch_time(storage(**facts), order).stall_s.value  # type: ignore[arg-type]


def test_a_load_is_its_fixed_part_its_requests_and_its_bytes() -> None:
    order = LoadOrder(num_bytes=8e9, files=10, streams=4)
    # Four streams of 1 GB/s, of which the node carries 2
    assert loads_s(order, host_s=20.0, latency_s=0.2) == pytest.approx(20 + 10 * 0.2 / 4 + 8 / 2)


def test_a_save_gathers_a_ranks_share_and_writes_the_nodes() -> None:
    order = SaveOrder(num_bytes=16e9, nodes=2, ranks_per_node=4)
    stall_s, durable_s = saves(order, latency_s=0.01)
    assert stall_s == pytest.approx(2 / 0.5 + 8 / 2 + 0.01)
    assert durable_s == stall_s


def test_streams_that_are_written_in_turn_take_one_after_the_other() -> None:
    order = SaveOrder(num_bytes=8e9, ranks_per_node=4)
    in_turn, _ = saves(order, at_once=1, node=100, latency_s=0)
    beside, _ = saves(order, node=100, latency_s=0)
    assert in_turn - beside == pytest.approx(4 * 2 - 2)


def test_in_the_background_a_save_stalls_for_its_staging() -> None:
    order = SaveOrder(num_bytes=8e9, is_async=True, work_between_s=60)
    found = save_time(storage(latency_s=0), order)
    assert found.stall_s.value == pytest.approx(8 / 2)
    assert not found.is_waiting
    assert found.durable_s == found.whole.time_s


def test_a_save_behind_another_waits_for_what_is_left_of_it() -> None:
    whole_s = 8 / 0.5 + 8 / 1
    order = SaveOrder(num_bytes=8e9, is_async=True, work_between_s=5)
    found = save_time(storage(latency_s=0), order)
    assert found.is_waiting
    assert found.stall_s.value == pytest.approx(whole_s - 5)


def test_a_cached_write_is_durable_when_it_is_uploaded() -> None:
    found = save_time(storage(upload=0.1, latency_s=0), SaveOrder(num_bytes=1e9))
    assert found.durable_s is not None
    assert found.durable_s.value - found.stall_s.value == pytest.approx(10)


@pytest.mark.parametrize(
    ("facts", "words"),
    [({"is_durable": False}, "goes with the node"), ({"upload": 1.0}, "")],
)
def test_what_is_not_durable_says_why(facts: dict[str, object], words: str) -> None:
    found = save_time(storage(**facts), SaveOrder(num_bytes=1e9))  # type: ignore[arg-type]
    assert (found.durable_s is None) == bool(words)
    assert words in found.durable_words


def test_what_a_step_hides_of_its_batch_is_no_stall() -> None:
    order = BatchOrder(batch_bytes=1e8, workers=2, readers=1, step_s=0.04)
    # Two streams of 1 GB/s: 0.1 s a batch and worker, one of them ready every 0.05 s
    assert batch_stall_s(order, latency_s=0) == pytest.approx(0.01)
    longer = BatchOrder(batch_bytes=1e8, workers=2, readers=1, step_s=0.06)
    assert batch_stall_s(longer, latency_s=0) == 0
    alone = BatchOrder(batch_bytes=1e8, workers=0, readers=1, step_s=0.06)
    assert batch_stall_s(alone, latency_s=0) == pytest.approx(0.1)


@given(BYTES, STREAMS, BOTH, FACTORS, st.floats(0, 1))
def test_more_bandwidth_is_never_slower(
    size: float, streams: int, rates: tuple[float, float], more: float, c: float
) -> None:
    stream, node = rates
    load = LoadOrder(num_bytes=size, streams=streams, cached_ratio=c)
    save = SaveOrder(num_bytes=size, ranks_per_node=streams)
    batch = BatchOrder(batch_bytes=size, workers=streams, step_s=0.1, cached_ratio=c)
    before = {"stream": stream, "node": node}
    for after in (before | {"stream": stream * more}, before | {"node": node * more}):
        assert loads_s(load, **after) <= loads_s(load, **before) * ROUNDING
        assert saves(save, **after)[0] <= saves(save, **before)[0] * ROUNDING
        assert batch_stall_s(batch, **after) <= batch_stall_s(batch, **before) * ROUNDING + 1e-9


@given(BYTES, STREAMS, RATES, LATENCIES, FACTORS)
def test_more_latency_is_never_faster(
    size: float, files: int, stream: float, latency_s: float, more: float
) -> None:
    load = LoadOrder(num_bytes=size, files=files)
    save = SaveOrder(num_bytes=size, files_per_rank=files)
    slower = latency_s * more
    faster_s, slower_s = (loads_s(load, stream=stream, latency_s=x) for x in (latency_s, slower))
    assert faster_s <= slower_s
    assert (
        saves(save, stream=stream, latency_s=latency_s)[0]
        <= saves(save, stream=stream, latency_s=slower)[0]
    )


@given(BYTES, STREAMS, RATES, RATES)
def test_more_streams_are_never_slower(
    size: float, streams: int, stream: float, node: float
) -> None:
    def both(count: int) -> float:
        return loads_s(LoadOrder(num_bytes=size, streams=count), stream=stream, node=node)

    assert both(streams + 1) <= both(streams) * ROUNDING
    few, more = (
        batch_stall_s(BatchOrder(batch_bytes=size, workers=count, step_s=0.01), stream=stream)
        for count in (streams, streams + 1)
    )
    assert more <= few * ROUNDING + 1e-9


@given(BYTES, STREAMS, RATES, RATES, st.floats(0, 1e4))
def test_in_the_background_a_save_never_stalls_longer_and_is_never_durable_sooner_than_written(
    size: float, ranks: int, rate: float, staging: float, between_s: float
) -> None:
    facts = {"stream": rate, "staging": staging}
    plain = SaveOrder(num_bytes=size, ranks_per_node=ranks)
    behind = SaveOrder(
        num_bytes=size, ranks_per_node=ranks, is_async=True, work_between_s=between_s
    )
    stall_s, durable_s = saves(behind, **facts)
    assert stall_s <= saves(plain, **facts)[0] * ROUNDING
    assert stall_s <= durable_s * ROUNDING
    rarer = SaveOrder(num_bytes=size, ranks_per_node=ranks, is_async=True, work_between_s=math.inf)
    assert saves(rarer, **facts)[0] <= stall_s


@given(BYTES, STREAMS, BOTH, st.floats(0, 1), st.floats(0, 1))
def test_what_memory_keeps_is_never_read_slower(
    size: float, streams: int, rates: tuple[float, float], one: float, other: float
) -> None:
    stream, node = rates
    less, more = sorted((one, other))
    warmer, colder = (
        loads_s(
            LoadOrder(num_bytes=size, streams=streams, cached_ratio=c), stream=stream, node=node
        )
        for c in (more, less)
    )
    assert warmer <= colder * ROUNDING


@given(BYTES, STREAMS, RATES, st.floats(0, 100), st.booleans())
def test_the_value_lies_in_its_interval(
    size: float, ranks: int, rate: float, between_s: float, is_async: bool
) -> None:
    disk = storage(stream=rate, upload=rate / 2)
    save = SaveOrder(
        num_bytes=size, ranks_per_node=ranks, is_async=is_async, work_between_s=between_s
    )
    found = save_time(disk, save)
    batch = batch_time(disk, BatchOrder(batch_bytes=size, workers=ranks, step_s=between_s))
    load_s = load_time(disk, LoadOrder(num_bytes=size, streams=ranks)).time_s
    assert found.durable_s is not None
    for each in (found.stall_s, found.durable_s, batch.stall_s, batch.first_s, load_s):
        assert 0 <= each.low <= each.value * ROUNDING
        assert each.value <= each.high * ROUNDING
