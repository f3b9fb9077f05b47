"""Is a file that holds something else found, and is it read as users' libraries read it?"""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from tests.probes.storage.test_saving import ALONE, SHAPE

from broadgauge.messages.storage import LoadPhase, ModelFormat
from broadgauge.probes.devices import CpuDevice
from broadgauge.probes.storage.held_model import BLOCKS_APART, POOL_BYTES, RandomBits, empty_model
from broadgauge.probes.storage.loading import OneFileLoader
from broadgauge.probes.storage.memory_needs import refuse_no_memory_to_load
from broadgauge.probes.storage.model_files import SAFETENSORS, TORCH, save_safetensors
from broadgauge.probes.trial import RefusedError


@pytest.fixture(autouse=True)
def group() -> Iterator[None]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def phase(kind: ModelFormat = "safetensors", **changes: Any) -> LoadPhase:
    asked = {
        "model": SHAPE,
        "dtype": "bfloat16",
        "is_sharded": True,
        "format": kind,
        "is_mapped": False,
        "is_broadcast": False,
        "cache": "warm",
        "files_bytes": 2 * SHAPE.parameters,
    }
    return LoadPhase(**(asked | changes))


def loader_of(asked: LoadPhase) -> OneFileLoader:
    model = empty_model(asked.model, torch.bfloat16, CpuDevice(), is_sharded=asked.is_sharded)
    return OneFileLoader(model, asked, CpuDevice(), RandomBits(7))


@pytest.mark.parametrize("is_mapped", [True, False])
@pytest.mark.parametrize("kind", ["safetensors", "torch"])
def test_a_flipped_bit_is_found(tmp_path: Path, kind: ModelFormat, is_mapped: bool) -> None:
    loader = loader_of(phase(kind, is_mapped=is_mapped))
    loader.write(tmp_path, is_writer=True)
    loader.forget()
    assert not loader.is_loaded()
    loader.load(tmp_path)
    assert loader.is_loaded()
    (file,) = loader.files(tmp_path)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    loader.load(tmp_path)
    assert not loader.is_loaded()


def test_users_libraries_find_the_weights(tmp_path: Path) -> None:
    from safetensors.torch import load_file

    for kind in ("safetensors", "torch"):
        loader_of(phase(kind)).write(tmp_path, is_writer=True)
    ours, theirs = load_file(tmp_path / SAFETENSORS), torch.load(tmp_path / TORCH)
    assert ours.keys() == theirs.keys()
    assert sum(each.numel() for each in ours.values()) == SHAPE.parameters
    assert {each.dtype for each in ours.values()} == {torch.bfloat16}


def test_bytes_that_a_rank_needs_are_those_of_the_weights(tmp_path: Path) -> None:
    loader = loader_of(phase(is_mapped=True))
    loader.write(tmp_path, is_writer=True)
    assert loader.load(tmp_path).needed_bytes == 2 * SHAPE.parameters


def test_tensors_differ_and_are_the_same_for_the_same_seed() -> None:
    bits = RandomBits(1)
    first, second = (bits.tensor((8, 64), torch.bfloat16, number) for number in range(2))
    assert not torch.equal(first.view(torch.int16), second.view(torch.int16))
    again = RandomBits(1).tensor((8, 64), torch.bfloat16, 0)
    assert torch.equal(first.view(torch.int16), again.view(torch.int16))


def test_a_tensor_longer_than_the_bits_that_are_made_repeats_them_elsewhere() -> None:
    """All of it is filled, and no file system finds two blocks that are equal."""
    words = POOL_BYTES // 4
    made = RandomBits(1).tensor((2 * words + 5,), torch.int32, 3)
    first, second, rest = made[:words], made[words : 2 * words], made[2 * words :]
    assert torch.equal(first.roll(-BLOCKS_APART), second)
    assert torch.equal(second.roll(-BLOCKS_APART)[:5], rest)
    blocks = [{bytes(each) for each in part.view(-1, 1024).numpy()} for part in (first, second)]
    assert not blocks[0] & blocks[1]


def test_a_system_error_of_safetensors_is_told_as_that(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file or directory") as told:
        save_safetensors({"a": torch.zeros(4)}, tmp_path / "nowhere" / "model.safetensors")
    assert isinstance(told.value, FileNotFoundError)


def test_a_library_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(RefusedError, match="needs the package safetensors on the ranks' Python"):
        loader_of(phase()).write(tmp_path, is_writer=True)


@pytest.mark.parametrize(
    ("changes", "needed"),
    [
        ({"is_mapped": True}, "3000001.00 GB"),  # the writer's tensors twice, and what it holds
        ({}, "3000001.00 GB"),  # the file, its tensors, and what it holds
        ({"format": "torch"}, "2000001.00 GB"),
    ],
)
def test_a_model_that_no_memory_holds_is_refused(changes: dict[str, Any], needed: str) -> None:
    asked = phase(**({"files_bytes": 10**15} | changes))
    with pytest.raises(RefusedError, match=f"a model of 1000000.00 GB needs {needed}"):
        refuse_no_memory_to_load(
            asked, ALONE, CpuDevice(), largest_bytes=10**9, is_for_all=True, is_on_memory=False
        )


@pytest.mark.parametrize(
    ("node", "changes", "needed"),
    [
        (0, {"is_on_memory": True}, "4000001.00 GB"),  # with the files themselves
        (1, {}, "1000001.00 GB"),  # node 0 writes and reads for it
        (1, {"is_for_all": False}, "3000001.00 GB"),
    ],
)
def test_of_nodes_each_counts_what_it_does(
    node: int, changes: dict[str, bool], needed: str
) -> None:
    asked = phase(files_bytes=10**15, is_broadcast=True, is_sharded=False)
    told = {"largest_bytes": 10**9, "is_for_all": True, "is_on_memory": False} | changes
    with pytest.raises(RefusedError, match=f"a model of 1000000.00 GB needs {needed}"):
        refuse_no_memory_to_load(asked, replace(ALONE, node=node), CpuDevice(), **told)
