"""Does a user's own program find in a checkpoint what was saved, and is a flipped bit found?"""

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

from broadgauge.messages.storage import CheckpointFormat, CheckpointPhase
from broadgauge.probes.devices import CpuDevice
from broadgauge.probes.identity import RankIdentity
from broadgauge.probes.storage import distributed_saving
from broadgauge.probes.storage.distributed_saving import METADATA, DistributedSaver
from broadgauge.probes.storage.memory_needs import refuse_no_memory_to_save
from broadgauge.probes.storage.saving import Saver, TorchSaver
from broadgauge.probes.storage.training_state import (
    TrainingState,
    each_tensor,
    is_same,
)
from broadgauge.probes.trial import RefusedError
from broadgauge.specs.workloads.workload import GptModel

SHAPE = GptModel(layers=1, hidden=32, heads=2, vocabulary=64, seq_len=16).shape
ALONE = RankIdentity(
    rank=0,
    world_size=1,
    local_rank=0,
    local_world_size=1,
    node=0,
    master_addr="127.0.0.1",
    master_port=1,
)


@pytest.fixture(autouse=True)
def group() -> Iterator[None]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def phase(kind: CheckpointFormat, **changes: Any) -> CheckpointPhase:
    asked = {
        "model": SHAPE,
        "has_optimizer_state": True,
        "is_sharded": True,
        "format": kind,
        "state_dict": "sharded",
        "is_async": False,
        "files_bytes": 12 * SHAPE.parameters,
    }
    return CheckpointPhase(**(asked | changes))


def saver_of(asked: CheckpointPhase) -> Saver:
    state = TrainingState(asked, ALONE, CpuDevice(), seed=1)
    if asked.format == "torch":
        return TorchSaver(state, asked, CpuDevice())
    return DistributedSaver(state, asked, CpuDevice(), dist.group.WORLD)


def test_all_weights_and_moments_are_in_it() -> None:
    state = TrainingState(phase("torch"), ALONE, CpuDevice(), seed=1).named()
    tensors = [tensor for tensor in each_tensor(state) if tensor.dim()]
    assert sum(tensor.numel() for tensor in tensors) == 3 * SHAPE.parameters
    assert len({tuple(plain(tensor).view(-1)[:4].tolist()) for tensor in tensors}) == len(tensors)


def plain(tensor: Any) -> Any:
    return tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor


@pytest.mark.parametrize("is_sharded", [True, False])
def test_torch_load_gives_it_back(tmp_path: Path, *, is_sharded: bool) -> None:
    saver = saver_of(phase("torch", is_sharded=is_sharded, state_dict="full"))
    saved = saver.save(tmp_path)
    (path,) = tmp_path.iterdir()
    assert saved.size_bytes == path.stat().st_size
    read = torch.load(path, weights_only=True)
    ours = list(each_tensor(saver.state.named()))
    theirs = list(each_tensor(read))
    assert len(ours) == len(theirs) > 0
    assert all(is_same(plain(a), b) for a, b in zip(ours, theirs, strict=True))
    assert saver.holds(tmp_path)


@pytest.mark.parametrize("is_async", [True, False])
def test_torch_distributed_checkpoint_gives_it_back(tmp_path: Path, *, is_async: bool) -> None:
    saver = saver_of(phase("distributed", is_async=is_async))
    saved = saver.save(tmp_path)
    assert saved.size_bytes == sum(path.stat().st_size for path in tmp_path.iterdir())
    ours = saver.state.named()["model"]
    read = {"model": {name: torch.zeros(tensor.shape) for name, tensor in ours.items()}}
    dcp.load(read, checkpoint_id=tmp_path)
    assert all(is_same(plain(ours[name]), read["model"][name]) for name in ours)
    assert saver.holds(tmp_path)


@pytest.mark.parametrize("kind", ["torch", "distributed"])
def test_a_flipped_bit_is_found(tmp_path: Path, kind: CheckpointFormat) -> None:
    saver = saver_of(phase(kind))
    saver.save(tmp_path)
    path = next(path for path in tmp_path.iterdir() if path.name != METADATA)
    content = bytearray(path.read_bytes())
    weight = next(each for each in each_tensor(saver.state.named()) if each.dim())
    place = content.find(plain(weight).numpy().tobytes())
    assert place > 0
    content[place + 1] ^= 1
    path.write_bytes(content)
    assert not saver.holds(tmp_path)


SLOW_S = 0.023


@pytest.mark.parametrize("kind", ["torch", "distributed"])
def test_a_slow_device_is_in_fsync_and_in_no_other_part(
    tmp_path: Path, kind: CheckpointFormat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torch fsyncs a distributed checkpoint's file before training goes on, and no other."""
    slept: list[float] = []
    sync = os.fsync

    def slow(fd: int) -> None:
        begin_s = time.perf_counter()
        time.sleep(SLOW_S)
        sync(fd)
        slept.append(time.perf_counter() - begin_s)

    monkeypatch.setattr(os, "fsync", slow)
    saved = saver_of(phase(kind)).save(tmp_path)
    waited_s = {part: saved.parts_s[part] for part in ("fsync", "fsync folder")}
    if kind == "torch":
        assert len(slept) == 3  # the file, the folder, the one above
        assert saved.seconds - saved.stall_s >= 3 * SLOW_S
    else:
        waited_s["metadata"] = saved.parts_s["metadata"]  # fsync'd by torch at their end
        assert saved.stall_s >= 2 * SLOW_S
    assert sum(waited_s.values()) >= sum(slept)
    assert min(waited_s.values()) >= SLOW_S


def test_in_the_background_training_goes_on_before_a_byte_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on = threading.Event()
    in_time: list[bool] = []
    save, write = dcp.async_save, distributed_saving._TimedRaw.write

    def then_told(*arguments: Any, **options: Any) -> Any:
        saving = save(*arguments, **options)
        goes_on.set()
        return saving

    def held(raw: Any, content: Any) -> int:
        in_time.append(goes_on.wait(60))
        return write(raw, content)

    monkeypatch.setattr(dcp, "async_save", then_told)
    monkeypatch.setattr(distributed_saving._TimedRaw, "write", held)
    saved = saver_of(phase("distributed", is_async=True)).save(tmp_path)
    assert in_time
    assert all(in_time)
    assert saved.operations_count == len(in_time)


def test_a_folder_that_its_owner_has_removed_is_not_made_again(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        saver_of(phase("distributed")).save(tmp_path / "rank0" / "save0")
    assert not list(tmp_path.iterdir())


def test_a_state_that_no_memory_holds_is_refused() -> None:
    with pytest.raises(RefusedError, match=r"a checkpoint of 1000000\.00 GB needs"):
        refuse_no_memory_to_save(phase("torch", files_bytes=10**15), ALONE, CpuDevice())
