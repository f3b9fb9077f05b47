"""Proves predict/storage/of_training.py: the bytes of a training, and its waits on a storage."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.predict.making_cases import BASE, case, cases
from tests.predict.storage.making_storages import storage

from broadgauge.predict.case import TrainingCase
from broadgauge.predict.storage.of_training import (
    StorageUse,
    batch_order,
    checkpoint_bytes,
    model_bytes,
    on_storage,
    save_order,
)

SAVING = StorageUse(steps_between_saves=10)


def test_bytes_follow_from_parameters() -> None:
    assert model_bytes(BASE) == pytest.approx(2 * 1.66e8)
    assert checkpoint_bytes(BASE) == pytest.approx(12 * 1.66e8)
    assert checkpoint_bytes(case(lora=True)) < checkpoint_bytes(BASE) / 10


def test_with_ddp_one_rank_saves_and_with_fsdp_all_do() -> None:
    one, all_ranks = (
        on_storage(case(strategy=strategy), storage(), SAVING, 1.0) for strategy in ("ddp", "fsdp")
    )
    assert one.save.value_s > all_ranks.save.value_s
    assert not save_order(BASE, SAVING, 1.0).is_sharded


def test_every_data_parallel_rank_of_a_node_loads_its_samples() -> None:
    order = batch_order(BASE, StorageUse(sample_bytes=1000.0), 1.0)
    assert (order.readers, order.requests) == (8, 4)
    assert order.batch_bytes == 4000
    tokens = batch_order(BASE, StorageUse(), 1.0)
    assert tokens.batch_bytes == 4 * 4 * BASE.seq_len
    split = case(strategy="megatron", tensor_parallel=8, data_parallel=2)
    assert batch_order(split, StorageUse(), 1.0).readers == 1


def test_without_saves_there_is_no_save_and_without_loaders_nothing_is_hidden() -> None:
    waits = on_storage(BASE, storage(), StorageUse(workers=0), 1.0)
    assert waits.save.value_s == 0
    assert waits.steps_between_saves is None
    assert waits.batch.value_s == 0
    assert waits.unhidden.value_s > 0


def test_a_save_behind_another_is_said_to_wait() -> None:
    behind = StorageUse(steps_between_saves=1, is_async=True)
    assert on_storage(BASE, storage(stream=0.01, node=0.01), behind, 0.1).is_waiting
    rarely = StorageUse(steps_between_saves=10_000, is_async=True)
    assert not on_storage(BASE, storage(), rarely, 0.1).is_waiting


@given(cases(), st.integers(1, 1000), st.floats(0.01, 10), st.floats(1, 10))
def test_a_faster_storage_is_never_waited_for_longer(
    each: TrainingCase, every: int, node: float, more: float
) -> None:
    for is_async in (True, False):
        use = StorageUse(steps_between_saves=every, is_async=is_async)
        slow, fast = (
            on_storage(each, storage(stream=rate, node=rate), use, 1.0)
            for rate in (node, node * more)
        )
        for name in ("start", "batch", "save"):
            assert getattr(fast, name).value_s <= getattr(slow, name).value_s * (1 + 1e-9)
