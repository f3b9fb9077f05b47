"""Does a user's own program find in a checkpoint what was saved, and is a flipped bit found?"""

import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

from broadgauge.messages.storage import Background, CheckpointPhase, ModelFormat, StateDict
from broadgauge.probes.devices import CpuDevice
from broadgauge.probes.identity import RankIdentity
from broadgauge.probes.storage import timed_writer
from broadgauge.probes.storage.distributed_saving import DistributedSaver
from broadgauge.probes.storage.memory_needs import refuse_no_memory_to_save
from broadgauge.probes.storage.safetensors_saving import SAVE_FILE, SafetensorsSaver
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


def phase(kind: ModelFormat, **changes: Any) -> CheckpointPhase:
    asked = {
        "model": SHAPE,
        "has_optimizer_state": True,
        "is_sharded": True,
        "format": kind,
        "state_dict": "sharded",
        "background": None,
        "files_bytes": 12 * SHAPE.parameters,
    }
    return CheckpointPhase(**(asked | changes))


def saver_of(asked: CheckpointPhase) -> Saver:
    state = TrainingState(asked, ALONE, CpuDevice(), seed=1)
    if asked.format == "torch":
        return TorchSaver(state, asked, CpuDevice())
    if asked.format == "safetensors":
        return SafetensorsSaver(state, asked, CpuDevice())
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


@pytest.mark.parametrize("state_dict", ["full", "sharded"])
def test_safetensors_gives_the_weights_back_and_torch_load_the_rest(
    tmp_path: Path, state_dict: StateDict
) -> None:
    saver = saver_of(phase("safetensors", state_dict=state_dict))
    saved = saver.save(tmp_path)
    mark = "" if state_dict == "full" else "-rank0"
    weights, optimizer = tmp_path / f"model{mark}.safetensors", tmp_path / f"optimizer{mark}.bin"
    assert {weights, optimizer} == set(tmp_path.iterdir())
    assert saved.size_bytes == sum(path.stat().st_size for path in tmp_path.iterdir())
    ours, theirs = saver.state.named(), safetensors.torch.load_file(weights)
    assert ours["model"].keys() == theirs.keys()
    assert all(is_same(plain(ours["model"][name]), theirs[name]) for name in theirs)
    read = torch.load(optimizer, weights_only=True)
    assert read["param_groups"] == ours["optimizer"]["param_groups"]
    pairs = zip(each_tensor(ours["optimizer"]), each_tensor(read), strict=True)
    assert all(is_same(plain(a), b) for a, b in pairs)
    assert saver.holds(tmp_path)


def test_weights_alone_are_one_file_of_safetensors(tmp_path: Path) -> None:
    asked = phase("safetensors", has_optimizer_state=False, files_bytes=4 * SHAPE.parameters)
    saver = saver_of(asked)
    saved = saver.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["model-rank0.safetensors"]
    assert list(saved.parts_s) == ["state dict", SAVE_FILE, "fsync", "fsync folder"]
    assert saver.holds(tmp_path)


def test_safetensors_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    with pytest.raises(RefusedError, match="needs the package safetensors on the ranks' Python"):
        saver_of(phase("safetensors"))


@pytest.mark.parametrize("background", ["thread", None])
def test_torch_distributed_checkpoint_gives_it_back(
    tmp_path: Path, background: Background | None
) -> None:
    saver = saver_of(phase("distributed", background=background))
    saved = saver.save(tmp_path)
    assert saved.size_bytes == sum(path.stat().st_size for path in tmp_path.iterdir())
    ours = saver.state.named()["model"]
    read = {"model": {name: torch.zeros(tensor.shape) for name, tensor in ours.items()}}
    dcp.load(read, checkpoint_id=tmp_path)
    assert all(is_same(plain(ours[name]), read["model"][name]) for name in ours)
    assert saver.holds(tmp_path)


@pytest.mark.parametrize("kind", ["torch", "safetensors", "distributed"])
def test_a_flipped_bit_is_found(tmp_path: Path, kind: ModelFormat) -> None:
    saver = saver_of(phase(kind))
    saver.save(tmp_path)
    weights, *others = [each for each in each_tensor(saver.state.named()) if each.dim()]
    for tensor in (weights, others[-1]):
        content = plain(tensor).numpy().tobytes()
        path = next(path for path in tmp_path.iterdir() if content in path.read_bytes())
        whole = path.read_bytes()
        flipped = bytearray(whole)
        flipped[whole.find(content) + 1] ^= 1
        path.write_bytes(flipped)
        assert not saver.holds(tmp_path)
        path.write_bytes(whole)
    assert saver.holds(tmp_path)


SLOW_S = 0.023


@pytest.mark.parametrize("kind", ["torch", "safetensors", "distributed"])
def test_a_slow_device_is_in_fsync_and_in_no_other_part(
    tmp_path: Path, kind: ModelFormat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torch fsyncs a distributed checkpoint's file before training goes on, and no other; neither
    does safetensors."""
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
    if kind != "distributed":
        num_files = len(list(tmp_path.iterdir()))
        assert len(slept) == num_files + 2  # the folder, the one above
        assert saved.seconds - saved.stall_s >= len(slept) * SLOW_S
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
    save, write = dcp.async_save, timed_writer._TimedRaw.write

    def then_told(*arguments: Any, **options: Any) -> Any:
        saving = save(*arguments, **options)
        goes_on.set()
        return saving

    def held(raw: Any, content: Any) -> int:
        in_time.append(goes_on.wait(60))
        return write(raw, content)

    monkeypatch.setattr(dcp, "async_save", then_told)
    monkeypatch.setattr(timed_writer._TimedRaw, "write", held)
    saved = saver_of(phase("distributed", background="thread")).save(tmp_path)
    assert in_time
    assert all(in_time)
    assert saved.operations_count == len(in_time)


def test_a_folder_that_its_owner_has_removed_is_not_made_again(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        saver_of(phase("distributed")).save(tmp_path / "rank0" / "save0")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("kind", "needed"), [("torch", "2000000.00"), ("safetensors", "2333333.33")]
)
def test_a_state_that_no_memory_holds_is_refused(kind: ModelFormat, needed: str) -> None:
    """Safetensors' weights, a third of it, may be copied once more."""
    told = re.escape(f"a checkpoint of 1000000.00 GB needs {needed} GB of the host")
    with pytest.raises(RefusedError, match=told):
        refuse_no_memory_to_save(phase(kind, files_bytes=10**15), ALONE, CpuDevice())
