"""Are checkpoints whole, their two times apart, and what is durable asked of the store itself?"""

import json
import time
from pathlib import Path

import pytest
import torch
import torch.distributed.checkpoint as dcp
from tests.probes.storage.scripted import BUCKET, IN_BUCKET, BehindMount, Store, on, plant
from torch.distributed.checkpoint.api import CheckpointException

from broadgauge.probes.storage import checkpoint_formats, durable
from broadgauge.probes.storage.accounting import Operations, Parts
from broadgauge.probes.storage.checkpoint_formats import save
from broadgauge.probes.storage.last_durable import SavedCheckpoint, last_durable, publish
from broadgauge.probes.storage.objects import key_of
from broadgauge.probes.storage.place import claim
from broadgauge.probes.storage.problems import first_cause
from broadgauge.probes.storage.streams import WriteStream
from broadgauge.probes.trial import RefusedError

pytestmark = pytest.mark.measuring
LAG_S = 0.1
FILES = ["torch", "safetensors"]
DCP = ["dcp", "dcp-async"]


def make_state() -> dict:
    model = {f"layers.{n}.weight": torch.rand(64, 1024) for n in range(4)}
    return {"model": model, "optimizer": {"step": 3, "moments": [torch.rand(1024)]}}


@pytest.fixture
def own(tmp_path):
    place = claim(on(tmp_path), "t1")
    place.path("checkpoints").mkdir()
    return place


@pytest.mark.parametrize("format", [*FILES, *DCP])
def test_a_save_is_whole_and_synced_and_its_parts_add_up(own, format):
    state = make_state()
    saving = save(state, own, "one", format, is_sharded=True)
    found = saving.wait_durable(10)
    assert saving.num_bytes == 4 * (4 * 64 * 1024 + 1024)
    assert 0 < saving.stall_s <= found.ended_s + 0.01
    assert "sync" in found.parts_s
    assert "write" in found.parts_s
    if format != "dcp-async":  # whose background has begun while the rank still stages
        assert sum(found.parts_s.values()) <= 1.05 * max(found.ended_s, saving.stall_s)
    assert sum(size or 0 for size in saving.sizes.values()) >= saving.num_bytes
    for name, size in saving.sizes.items():
        assert own.path(name).stat().st_size == size or size is None


def test_torch_reads_what_was_saved(own):
    state = make_state()
    save(state, own, "one", "torch", is_sharded=True).wait_durable(10)
    loaded = torch.load(own.path("checkpoints/one/rank0.pt"))
    assert torch.equal(loaded["model"]["layers.3.weight"], state["model"]["layers.3.weight"])
    assert loaded["optimizer"]["step"] == 3


def test_what_training_changes_after_an_asynchronous_save_is_not_in_it(own):
    """CPU tensors were once saved with later values: PyTorch issue 144657."""
    state = {"weight": torch.ones(1 << 20)}
    saving = save(state, own, "one", "dcp-async", is_sharded=True)
    state["weight"].zero_()
    saving.wait_durable(10)
    found = {"weight": torch.zeros(1 << 20)}
    dcp.load(found, storage_reader=dcp.FileSystemReader(own.path("checkpoints/one")), no_dist=True)
    assert bool((found["weight"] == 1).all())


def test_on_a_disk_durable_is_when_file_and_folder_are_synced(own, monkeypatch):
    monkeypatch.setattr(durable, "filesystem_type", lambda _: "ext4")
    synced = []
    monkeypatch.setattr(checkpoint_formats, "fsync_folder", synced.append)
    saving = save(make_state(), own, "one", "torch", is_sharded=True)
    found = saving.wait_durable(10)
    assert synced == [own.path("checkpoints/one"), own.path("checkpoints")]
    assert found.evidence == "file and folder fsynced on ext4"
    assert found.durable_s == pytest.approx(saving.ended_s)


@pytest.mark.parametrize("format", [*FILES, *DCP])
def test_a_mount_whose_fsync_lies_is_durable_when_its_bucket_says_so(tmp_path, monkeypatch, format):
    plant(monkeypatch, BehindMount(tmp_path, LAG_S))
    own = claim(on(tmp_path, behind=BUCKET), "t1")
    own.path("checkpoints").mkdir()
    saving = save(make_state(), own, "one", format, is_sharded=True)
    found = saving.wait_durable(10)
    assert found.durable_s is not None
    assert found.durable_s >= found.ended_s + LAG_S
    assert found.durable_s > saving.stall_s
    assert "there" in found.evidence
    assert found.evidence.endswith("checksum agrees")
    assert found.parts_s["upload"] >= LAG_S


def test_an_object_that_never_comes_is_not_durable(tmp_path, monkeypatch):
    plant(monkeypatch, BehindMount(tmp_path, lag_s=60))
    own = claim(on(tmp_path, behind=BUCKET), "t1")
    own.path("checkpoints").mkdir()
    found = save(make_state(), own, "one", "torch", is_sharded=True).wait_durable(0.05)
    assert found.durable_s is None
    assert "is not in s3://bucket after 0.05 s" in found.evidence


def test_another_checksum_in_the_store_is_an_error(tmp_path, monkeypatch):
    plant(monkeypatch, BehindMount(tmp_path, 0, checksum="0" * 32))
    own = claim(on(tmp_path, behind=BUCKET), "t1")
    own.path("checkpoints").mkdir()
    saving = save(make_state(), own, "one", "torch", is_sharded=True)
    with pytest.raises(OSError, match=r"rank0\.pt: the object in the store has another checksum"):
        saving.wait_durable(10)


@pytest.mark.parametrize(
    ("kind", "why"), [("fuse.rclone", "no bucket behind it is named"), ("tmpfs", "is memory")]
)
def test_where_nobody_can_be_asked_durable_is_unknown(own, monkeypatch, kind, why):
    monkeypatch.setattr(durable, "filesystem_type", lambda _: kind)
    found = save(make_state(), own, "one", "torch", is_sharded=True).wait_durable(10)
    assert found.durable_s is None
    assert why in found.evidence


@pytest.mark.parametrize("format", FILES)
def test_objects_are_durable_when_the_store_has_them(monkeypatch, format):
    plant(monkeypatch, Store())
    own = claim(IN_BUCKET, "t1")
    saving = save(make_state(), own, "one", format, is_sharded=True)
    found = saving.wait_durable(10)
    assert found.durable_s is not None
    assert found.durable_s >= found.ended_s
    assert {"serialise", "upload"} == set(found.parts_s)


def test_pinned_staging_needs_a_gpu(own):
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(RefusedError, match="needs a GPU"):
        save(make_state(), own, "one", "dcp-async-pinned", is_sharded=True)


@pytest.mark.parametrize("format", [*FILES, *DCP])
def test_a_full_disk_in_the_middle_is_the_storages_own_error(own, monkeypatch, format):
    """Not what torch's writer makes of it."""
    write = WriteStream.write

    def full(self: WriteStream, data: bytes) -> int:
        if self.num_bytes + len(data) > 100_000:
            self.error = OSError(28, "No space left on device")
            raise self.error
        return write(self, data)

    monkeypatch.setattr(WriteStream, "write", full)
    with pytest.raises((OSError, CheckpointException)) as raised:
        save(make_state(), own, "one", format, is_sharded=True).wait_durable(10)
    cause = first_cause(raised.value)
    assert isinstance(cause, OSError), cause
    assert cause.errno == 28


def test_our_timers_take_at_most_two_percent_of_a_save(own):
    """Counted: how often the clock is read, by what it takes to a stream that writes nothing."""
    state = {f"layers.{n}": torch.rand(1 << 18) for n in range(32)}
    begin_s = time.perf_counter()
    saving = save(state, own, "one", "torch", is_sharded=True)
    total_s = time.perf_counter() - begin_s

    class Nowhere:
        def write(self, data: bytes) -> int:
            return len(data)

    stream, calls = WriteStream(Nowhere(), Parts(), Operations(), is_file=True), 20_000
    begin_s = time.perf_counter()
    for _ in range(calls):
        stream.write(b"")
    each_s = (time.perf_counter() - begin_s) / calls
    assert saving.operations.count * each_s <= 0.02 * total_s


@pytest.mark.parametrize("is_folder", [True, False])
def test_the_last_durable_checkpoint_is_the_last_that_was_published(own, monkeypatch, is_folder):
    """A node that is lost during an upload leaves the marker of the one before."""
    if not is_folder:
        plant(monkeypatch, Store())
        own = claim(IN_BUCKET, "t1")
    assert last_durable(own) is None
    first = SavedCheckpoint(
        name="step1", began_unix_s=1.0, stall_s=0.1, durable_s=0.5, evidence="there"
    )
    publish(own, first)
    save(make_state(), own, "step2", "torch", is_sharded=True)  # and the node is gone
    assert last_durable(own) == first
    if is_folder:
        unfinished = Path(own.path("checkpoints/last_durable.incomplete"))
        unfinished.write_text(json.dumps({"name": "st"})[:5])  # lost while it was written
        assert last_durable(own) == first
    else:
        assert key_of(BUCKET, "x") == "bucket/data/x"
