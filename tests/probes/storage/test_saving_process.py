"""Is what a process saves beside a rank told as what the rank saves, and does that process end?"""

import multiprocessing
import os
import resource
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from tests.probes.storage.test_checkpoint import saving_beside
from tests.probes.storage.test_saving import ALONE, phase, plain, saver_of

from broadgauge.probes.devices import CpuDevice
from broadgauge.probes.storage import memory_needs
from broadgauge.probes.storage.file_systems import file_system_of
from broadgauge.probes.storage.memory_needs import refuse_no_memory_to_save
from broadgauge.probes.storage.saving import Saver
from broadgauge.probes.storage.saving_process import OTHER_FILES, SavingProcess
from broadgauge.probes.storage.training_state import is_same
from broadgauge.probes.trial import RefusedError

PARTS = (
    *("state dict", "stage", "hand over", "plan", "serialise", "write", "fsync", "metadata"),
    "fsync folder",
)


@pytest.fixture(autouse=True)
def group(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.fixture
def saver() -> Iterator[Saver]:
    made = saver_of(phase("distributed", background="process"))
    yield made
    made.close()
    assert not multiprocessing.active_children()


def test_a_process_saves_and_is_told_as_a_thread_is(tmp_path: Path, saver: Saver) -> None:
    """Twice, as it lives on; the third time anew."""
    children: list[Any] = []
    for name in ("first", "second", "anew"):
        if name == "anew":
            saver.close()
            assert not multiprocessing.active_children()
        folder = tmp_path / name
        folder.mkdir()
        saved = saver.save(folder)
        children += multiprocessing.active_children()
        assert len(saving_beside(os.getpid())) == 1
        assert tuple(saved.parts_s) == PARTS
        assert saved.stall_s == saved.parts_s["state dict"] + saved.parts_s["stage"]
        assert saved.operations_count
        assert saved.size_bytes == sum(path.stat().st_size for path in folder.iterdir())
        assert saver.holds(folder)
        ours = saver.state.named()["model"]
        read = {"model": {name: torch.zeros(tensor.shape) for name, tensor in ours.items()}}
        dcp.load(read, checkpoint_id=folder)
        assert all(is_same(plain(ours[name]), read["model"][name]) for name in ours)
        check_counted(folder, saved.other_process_bytes)
    first, second, anew = children
    assert first.pid == second.pid != anew.pid


def check_counted(folder: Path, written_bytes: int | None) -> None:
    """By the kernel, of the process that wrote."""
    file_system = file_system_of(folder)
    if file_system is not None and file_system.is_counted and written_bytes is not None:
        assert written_bytes >= sum(path.stat().st_size for path in folder.iterdir())


def test_what_fails_there_is_told_here_and_the_process_ends(tmp_path: Path, saver: Saver) -> None:
    with pytest.raises(FileNotFoundError):
        saver.save(tmp_path / "rank0" / "save0")
    (child,) = multiprocessing.active_children()
    assert not list(tmp_path.iterdir())
    os.kill(child.pid or 0, signal.SIGKILL)
    child.join()
    with pytest.raises(RuntimeError, match="the process that saves beside this rank is gone"):
        saver.save(tmp_path)


def test_as_many_files_may_be_open_as_a_state_has_tensors() -> None:
    before = soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = soft - OTHER_FILES - 2
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, hard))
    try:
        process = SavingProcess(tensors_count=few // 2)
        allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        process.close()
        assert few < allowed <= soft
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (few, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    if hard != resource.RLIM_INFINITY:
        with pytest.raises(RefusedError, match=rf"and {hard} are allowed: `ulimit -Hn"):
            SavingProcess(tensors_count=hard)


def test_shared_memory_for_two_saves_of_each_rank_of_the_node_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = phase("distributed", background="process", files_bytes=10**9)
    monkeypatch.setattr(memory_needs, "SHARED", tmp_path / "missing")
    of_two = replace(ALONE, world_size=2, local_world_size=2)
    for identity, is_sharded, needed in ((ALONE, True, 2), (of_two, True, 2), (of_two, False, 4)):
        with pytest.raises(RefusedError, match=rf"needs {needed}\.00 GB in .*, and 0\.00 GB are"):
            refuse_no_memory_to_save(replace(asked, is_sharded=is_sharded), identity, CpuDevice())
