"""Proves messages/storage_bytes.py: what a plan of phases writes, reads and asks for."""

from dataclasses import replace

import pytest

from broadgauge.messages.storage import (
    BatchPlan,
    CheckpointPlan,
    ModelPlan,
    RawPlan,
    StoragePlace,
    StorageTask,
)
from broadgauge.messages.storage_bytes import PART_BYTES, total_traffic, traffic_by_phase

MIB = 2**20
TASK = StorageTask(
    place=StoragePlace(name="disk", folder="/mnt"),
    caches=("cold", "warm"),
    most_bytes=2**40,
    raw=RawPlan(
        file_bytes=32 * MIB,
        block_bytes=MIB,
        small_files=10,
        random_reads=100,
        accesses=("write", "read", "random-read", "small-write", "small-read", "metadata"),
    ),
    batch_loading=BatchPlan(
        layouts=("files", "webdataset"),
        samples=50,
        sample_bytes=1000,
        batch=5,
        workers=2,
        prefetch=2,
        step_s=0.01,
    ),
    model_loading=ModelPlan(
        model_bytes=64 * MIB,
        formats=("safetensors", "torch"),
        load_by=("every-rank", "rank0-broadcast"),
    ),
    checkpoint_saving=CheckpointPlan(
        checkpoint_bytes=100 * MIB, formats=("torch", "dcp"), is_sharded=True, saves=3
    ),
)


def test_each_phase_counts_what_it_writes() -> None:
    written = {
        phase: each.written_bytes
        for phase, each in traffic_by_phase(TASK, nodes=2, ranks_per_node=2).items()
    }
    large, small = 32 * MIB, 10 * 4096
    assert written == {
        "raw": 4 * (large + 2 * large + 2 * large + small + 2 * small),
        "batch_loading": 4 * 2 * 50 * (1500 + 4096),
        "model_loading": 2 * 2 * (2 + 1) * held(64 * MIB),  # once a node, or by the first rank
        "checkpoint_saving": 2 * 3 * held(100 * MIB, 4),  # of all ranks together
    }


def held(size: int, files: int = 1) -> int:
    return size + size // 50 + files * MIB


def test_nodes_that_see_the_same_files_write_a_model_once() -> None:
    shared = replace(TASK, place=replace(TASK.place, is_shared=True))
    here, there = (
        traffic_by_phase(task, nodes=2, ranks_per_node=2)["model_loading"]
        for task in (TASK, shared)
    )
    assert 2 * here.written_bytes == 3 * there.written_bytes
    assert here.read_bytes == there.read_bytes == 2 * 2 * (4 + 1) * 64 * MIB


def test_what_is_read_is_written_for_each_state_of_the_cache() -> None:
    assert TASK.raw is not None
    reads = replace(TASK, raw=replace(TASK.raw, accesses=("read",)))
    raw = traffic_by_phase(reads, nodes=1, ranks_per_node=1)["raw"]
    assert (raw.written_bytes, raw.read_bytes) == (2 * 32 * MIB, 2 * 32 * MIB)


def test_large_objects_go_in_parts_and_samples_by_themselves() -> None:
    traffic = traffic_by_phase(TASK, nodes=1, ranks_per_node=1)
    assert traffic["batch_loading"].puts_count == 50 + 1
    assert traffic["batch_loading"].gets_count == 2 * (50 + 1)
    assert traffic["checkpoint_saving"].puts_count == 2 * 3 * -(-100 * MIB // PART_BYTES)


@pytest.mark.parametrize("phase", ["raw", "batch_loading", "model_loading", "checkpoint_saving"])
def test_a_phase_that_is_left_out_adds_nothing(phase: str) -> None:
    whole = traffic_by_phase(TASK, nodes=1, ranks_per_node=2)
    without = traffic_by_phase(replace(TASK, **{phase: None}), nodes=1, ranks_per_node=2)
    left = {name: each for name, each in whole.items() if name != phase}
    assert without == left
    assert total_traffic(without).written_bytes < total_traffic(whole).written_bytes
