"""Is each phase measured and said, and does what goes wrong stay where it went wrong?"""

import errno
import os
import threading
from pathlib import Path

import pytest
from tests.probes.storage.scripted import (
    BUCKET,
    IN_BUCKET,
    MOST_BYTES,
    Said,
    Store,
    measure,
    on,
    plant,
)

from broadgauge.messages.storage import BatchPlan, CheckpointPlan, ModelPlan, RawPlan
from broadgauge.probes.storage import cache, models, raw_files, reads
from broadgauge.probes.storage.objects import key_of

pytestmark = pytest.mark.measuring
RAW = RawPlan(
    file_bytes=2**20,
    block_bytes=2**16,
    small_files=5,
    random_reads=20,
    accesses=("write", "read", "random-read", "small-write", "small-read", "metadata"),
)
BATCHES = BatchPlan(
    layouts=("files", "jsonl"),
    samples=10,
    sample_bytes=5000,
    batch=4,
    workers=0,
    prefetch=2,
    step_s=0.001,
)
MODEL = ModelPlan(
    model_bytes=2**20,
    formats=("safetensors", "safetensors-mmap", "torch", "dcp"),
    load_by=("every-rank", "rank0-broadcast"),
)
CHECKPOINT = CheckpointPlan(
    checkpoint_bytes=2**20, formats=("torch", "safetensors", "dcp"), is_sharded=True, saves=2
)
ALL = {
    "raw": RAW,
    "batch_loading": BATCHES,
    "model_loading": MODEL,
    "checkpoint_saving": CHECKPOINT,
}


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_every_variant_is_said_once_and_nothing_is_left(tmp_path):
    said = measure(on(tmp_path), caches=("cold", "warm"), **ALL)
    assert said.problems == []
    keys = [(block.phase, block.variant, block.asked_cache) for block in said.blocks]
    assert len(keys) == len(set(keys)) == 3 + 3 * 2 + 2 * 2 + 8 * 2 + 3 * 2
    assert len(said.marks) == len(set(said.marks)) == 2 * len(keys)
    for block in said.blocks:
        assert 0 <= block.stall_s <= block.busy_s + 0.01
        assert sum(block.parts_s.values()) <= 1.05 * block.busy_s + 0.001
        assert (block.asked_cache is None) == (block.cache is None)
    assert left_in(tmp_path) == []


def test_batches_are_counted_and_each_has_its_stall(tmp_path):
    said = measure(on(tmp_path), batch_loading=BATCHES)
    for block in said.blocks:
        assert block.samples == block.operations == 10
        assert len(block.step_stalls_s) == 3
        assert block.stall_s == pytest.approx(sum(block.step_stalls_s))
        assert block.num_bytes >= 0.99 * 10 * BATCHES.sample_bytes
        assert block.busy_s >= block.stall_s + 3 * BATCHES.step_s


def test_a_warm_cache_sold_as_cold_is_not_called_cold(tmp_path, monkeypatch):
    """All reads of all phases, where evicting does nothing."""
    monkeypatch.setattr(cache, "evict", lambda _: None)
    monkeypatch.setattr(raw_files, "takes_direct", lambda *_: False)
    said = measure(on(tmp_path), **ALL)
    asked_cold = [block for block in said.blocks if block.asked_cache == "cold"]
    assert len(asked_cold) == 3 + 2 + 8
    assert {block.cache.state for block in asked_cold} <= {"warm", "unknown"}


def test_a_phase_that_would_write_more_than_may_be_is_refused_and_the_others_go_on(tmp_path):
    said = measure(
        on(tmp_path),
        raw=RawPlan(**{**_plain(RAW), "file_bytes": 2 * MOST_BYTES, "accesses": ("write",)}),
        model_loading=ModelPlan(model_bytes=2**20, formats=("torch",), load_by=("every-rank",)),
    )
    (problem,) = said.problems
    assert (problem.phase, problem.variant) == (
        "raw",
        "write, direct",
    ) or problem.variant == "write"
    assert "it would write 128 MiB" in problem.message
    assert "hint: raise most_bytes" in problem.message
    assert [block.phase for block in said.blocks] == ["model_loading"]


def _plain(plan: RawPlan) -> dict:
    return {name: getattr(plan, name) for name in RawPlan.__slots__}


def test_no_more_is_written_than_was_said(tmp_path, monkeypatch):
    """Counted where files are opened for writing, sizes when they are removed."""
    from broadgauge.probes.storage import batches, checkpoints, place, probe

    seen = 0
    remove = place.remove_part

    def count(own, name):
        nonlocal seen
        path = own.path(name)
        files = [path] if path.is_file() else path.rglob("*")
        seen += sum(file.stat().st_size for file in files if file.is_file())
        remove(own, name)

    for module in (batches, checkpoints, models, probe, place):
        if hasattr(module, "remove_part"):
            monkeypatch.setattr(module, "remove_part", count)
    from broadgauge.probes.storage import raw

    monkeypatch.setattr(raw, "remove_part", count)
    planned = []
    prepare = probe._Probe._prepare

    def note(self, here, variant):
        problem = prepare(self, here, variant)
        planned.append(self.written_bytes)
        return problem

    monkeypatch.setattr(probe._Probe, "_prepare", note)
    measure(on(tmp_path), caches=("cold", "warm"), **ALL)
    assert 0 < seen <= planned[-1] <= MOST_BYTES


def test_a_read_only_folder_is_a_problem_of_each_phase(tmp_path, monkeypatch):
    def refuse(self: Path, *_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    said = measure(on(tmp_path), **ALL)
    assert said.blocks == []
    assert [problem.phase for problem in said.problems] == list(ALL)
    assert all("is read-only" in problem.message for problem in said.problems)
    assert all(str(tmp_path) in problem.message for problem in said.problems)


def test_a_full_disk_in_the_middle_ends_one_variant(tmp_path, monkeypatch):
    write = os.pwrite

    def full(fd: int, data: bytes, offset: int) -> int:
        if offset > RAW.file_bytes // 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(fd, data, offset)

    monkeypatch.setattr(os, "pwrite", full)
    said = measure(on(tmp_path), raw=RawPlan(**{**_plain(RAW), "accesses": ("write", "metadata")}))
    (problem,) = said.problems
    assert "is full" in problem.message
    assert "hint: free some space" in problem.message
    assert [block.variant for block in said.blocks] == ["metadata"]
    assert left_in(tmp_path) == []


def test_what_hangs_ends_and_nothing_else_is_tried_on_it(tmp_path, monkeypatch):
    freed = threading.Event()
    tried = []

    def hang(*_: object) -> None:
        tried.append(1)
        freed.wait()

    monkeypatch.setattr(raw_files, "use_names", hang)
    said = measure(
        on(tmp_path),
        limit_s=0.5,
        raw=RawPlan(**{**_plain(RAW), "accesses": ("metadata", "small-write")}),
        checkpoint_saving=CHECKPOINT,
    )
    freed.set()
    assert said.blocks == []
    assert len(tried) == 1
    assert all("no answer for" in problem.message for problem in said.problems)
    assert len(said.marks) == 2 * (2 + 6)  # the same as on a rank where it did not


def test_a_defect_ends_the_trial_and_our_folder_is_gone(tmp_path, monkeypatch):
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(raw_files, "use_names", fail)
    with pytest.raises(ZeroDivisionError):
        measure(on(tmp_path), raw=RawPlan(**{**_plain(RAW), "accesses": ("metadata",)}))
    assert left_in(tmp_path) == []


def test_objects_are_never_warm_and_none_are_left(monkeypatch):
    store = plant(monkeypatch, Store())
    checkpoint = CheckpointPlan(
        checkpoint_bytes=2**20, formats=("torch", "safetensors"), is_sharded=True, saves=1
    )
    model = ModelPlan(model_bytes=2**20, formats=("safetensors", "torch"), load_by=("every-rank",))
    said = measure(
        IN_BUCKET,
        caches=("cold", "warm"),
        raw=RAW,
        batch_loading=BATCHES,
        model_loading=model,
        checkpoint_saving=checkpoint,
    )
    assert said.problems == []
    states = {block.cache.state for block in said.blocks if block.cache is not None}
    assert states == {"cold"}
    assert {block.asked_cache for block in said.blocks} == {"cold", None}
    assert store.names() == []


def test_a_bucket_that_is_not_there_is_said(monkeypatch):
    store = plant(monkeypatch, Store())
    store.memory.pseudo_dirs = [""]
    said: Said = measure(IN_BUCKET, raw=RAW)
    (problem,) = said.problems
    assert "there is no bucket 'bucket'" in problem.message


def test_what_a_mount_shows_is_put_into_its_bucket_first(tmp_path, monkeypatch):
    """So that its own cache has never seen it."""
    store = plant(monkeypatch, Store())
    put = []
    pipe_file = store.memory.pipe_file

    def through(key, content):
        put.append(key)
        pipe_file(key, content)
        path = tmp_path / key.removeprefix("bucket/data/")  # as the mount shows it
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    store.pipe_file = through  # type: ignore[attr-defined]
    said = measure(
        on(tmp_path, behind=BUCKET),
        model_loading=ModelPlan(
            model_bytes=2**20, formats=("safetensors",), load_by=("every-rank",)
        ),
    )
    assert said.problems == []
    assert [key.rpartition("/")[2] for key in put] == ["model.safetensors"]
    assert put[0].startswith(key_of(BUCKET, "broadgauge-storage-"))


def test_a_mount_that_does_not_show_it_in_time_is_a_problem(tmp_path, monkeypatch):
    plant(monkeypatch, Store())
    monkeypatch.setattr(reads.wait_for_files, "__defaults__", (0.05,))
    said = measure(
        on(tmp_path, behind=BUCKET),
        model_loading=ModelPlan(
            model_bytes=2**20, formats=("safetensors",), load_by=("every-rank",)
        ),
    )
    (problem,) = said.problems
    assert "is not seen here after 0.05 s" in problem.message


def test_the_list_of_checkpoints_is_left_with_the_trial(tmp_path):
    said = measure(on(tmp_path), checkpoint_saving=CHECKPOINT)
    (artifact,) = [each for each in said.messages if each.type == "artifact"]
    assert artifact.kind == "checkpoint_list"
    assert len(Path(artifact.path).read_text().splitlines()) == 6
