"""Does each sample come exactly once, and is a wait for a batch a wait of this rank's?"""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.direct_folder import direct_folder
from tests.probes.harness import Ranks

from broadgauge.merging.batches import percentile_s
from broadgauge.merging.merge import merge
from broadgauge.messages.storage import BatchesPhase, BatchSource
from broadgauge.probes.identity import RankIdentity
from broadgauge.probes.storage import batch_files
from broadgauge.probes.storage.batch_datasets import as_tensor, loader_of, readers_of
from broadgauge.probes.storage.batch_epoch import read_epoch, sleeping
from broadgauge.probes.storage.batch_files import (
    payload_of,
    refuse_missing_package,
    tar_files,
    write_samples,
)
from broadgauge.probes.storage.batches import refuse_other_samples
from broadgauge.probes.storage.file_systems import file_system_of
from broadgauge.probes.trial import RefusedError
from broadgauge.specs.case import Case
from broadgauge.specs.launching import TrialOutcome
from broadgauge.specs.records.record import Measurement, Status
from broadgauge.specs.storages.storage import Storage
from broadgauge.specs.workloads.tasks import task_of
from broadgauge.specs.workloads.workload import BatchesWorkload

SAMPLES, SAMPLE_BYTES, BATCH, RANKS = 64, 1024, 6, 2
STEPS = 6
"""Of a rank: five batches of 6 and one of 2; with two workers over tar files, of each 6, 6 and 4.
"""
SOURCES: tuple[BatchSource, ...] = ("jsonl", "files", "arrow", "webdataset")
LIGHT: tuple[BatchSource, ...] = ("jsonl", "files", "webdataset")
"""The import of the others' package takes seconds."""
WAYS = [(source, workers) for source in SOURCES for workers in (0, 2)]


def workload(source: BatchSource, workers: int, **more: Any) -> BatchesWorkload:
    asked: dict[str, Any] = {
        "kind": "storage",
        "phase": "batches",
        "source": source,
        "workers": workers,
        "samples": SAMPLES,
        "sample_size": SAMPLE_BYTES,
        "batch_per_rank": BATCH,
        "repetitions": 2,
    }
    return BatchesWorkload.model_validate(asked | more)


def case_of(asked: BatchesWorkload, folder: Path) -> Case:
    return Case(
        workload=asked,
        network=None,
        nodes=1,
        ranks_per_node=RANKS,
        device="cpu",
        backend="gloo",
        environment={},
        storage=Storage(name="disk", path=str(folder)),
    )


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with direct_folder(tmp_path_factory.mktemp("batches"), Path(__file__).parent) as folder:
        yield folder


@pytest.fixture(scope="module")
def outcomes(
    tmp_path_factory: pytest.TempPathFactory, storage: Path
) -> dict[tuple[str, int], TrialOutcome]:
    """That each sample came once and whole was asked by the ranks: they refuse the trial else."""
    found = {}
    with Ranks(RANKS, tmp_path_factory.mktemp("ranks"), ranks_per_node=RANKS) as ranks:
        for source, workers in WAYS:
            case = case_of(workload(source, workers), storage)
            outcome = ranks.run_trial(case, trial_id=f"{source}{workers}")
            assert outcome.status is Status.OK, ranks.logs()
            assert not list(storage.iterdir()), source
            found[source, workers] = outcome
        with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
            case = case_of(workload("files", 0), Path(memory))
            found["memory", 0] = ranks.run_trial(case, trial_id="memory")
            assert not list(Path(memory).iterdir())
    return found


def said(outcome: TrialOutcome) -> list[list[dict[str, Any]]]:
    """The epochs of each rank."""
    return [
        [message for message in rank if message.get("kind") == "file_access"]
        for rank in outcome.messages
    ]


def measured(way: tuple[BatchSource, int], outcome: TrialOutcome) -> Measurement:
    return merge(case_of(workload(*way), Path("/mnt")), outcome, None).measurement


@pytest.mark.parametrize("way", WAYS)
def test_parts_of_each_rank_add_up(
    way: tuple[BatchSource, int], outcomes: dict[tuple[str, int], TrialOutcome]
) -> None:
    for rank in said(outcomes[way]):
        assert len(rank) == 2
        for epoch in rank:
            assert list(epoch["parts_s"]) == ["start", "compute", "wait", "end"]
            assert sum(epoch["parts_s"].values()) == pytest.approx(epoch["seconds"])
            assert 0 < epoch["stall_s"] <= epoch["seconds"]
            assert sum(epoch["waits_s"]) == pytest.approx(epoch["stall_s"])
            waited_s = epoch["parts_s"]["start"] + epoch["parts_s"]["wait"]
            assert waited_s == pytest.approx(epoch["stall_s"])
            assert len(epoch["waits_s"]) == STEPS
            assert epoch["operations_count"] is None


@pytest.mark.parametrize("way", WAYS)
def test_ranks_read_each_byte_once(
    way: tuple[BatchSource, int], outcomes: dict[tuple[str, int], TrialOutcome]
) -> None:
    found = measured(way, outcomes[way])
    for row in found.file_accesses:
        assert row.size_bytes == SAMPLES * SAMPLE_BYTES
        assert len(row.parts_of_ranks) == RANKS
        assert len(row.waits_s) == STEPS
    for metric in ("wait_per_100_samples_s", "batch_wait_s", "batch_wait_p99_s"):
        value = found.metrics[metric]
        assert value is not None
        assert value > 0, metric


@pytest.mark.parametrize("way", WAYS)
def test_a_cold_epoch_comes_from_the_device(
    way: tuple[BatchSource, int], storage: Path, outcomes: dict[tuple[str, int], TrialOutcome]
) -> None:
    file_system = file_system_of(storage)
    if file_system is None or not file_system.is_counted:
        pytest.skip("the kernel counts no reads of this file system")
    for row in measured(way, outcomes[way]).file_accesses:
        assert row.cache == "cold", row.evidence
        assert row.device_bytes is not None
        assert row.device_bytes >= row.size_bytes
        if way[0] == "files":  # of two ranks with two workers none is counted twice
            assert row.device_bytes < 2 * SAMPLES * 4096


def test_a_file_system_in_memory_is_never_cold(
    outcomes: dict[tuple[str, int], TrialOutcome],
) -> None:
    for row in measured(("files", 0), outcomes["memory", 0]).file_accesses:
        assert (row.cache, row.evidence) == ("warm", "tmpfs is memory")


def phase_of(source: BatchSource, workers: int = 0, **more: Any) -> BatchesPhase:
    task = task_of(case_of(workload(source, workers, **more), Path("/mnt")))
    assert isinstance(task.phase, BatchesPhase)  # type: ignore[union-attr]
    return task.phase  # type: ignore[union-attr]


def identity(rank: int) -> RankIdentity:
    return RankIdentity(
        rank=rank,
        world_size=RANKS,
        local_rank=rank,
        local_world_size=RANKS,
        node=0,
        master_addr="127.0.0.1",
        master_port=1,
    )


@pytest.mark.parametrize("source", LIGHT)
def test_epochs_differ_in_their_order_and_in_nothing_else(
    source: BatchSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    phase = phase_of(source)
    write_samples(tmp_path, phase, readers_of(phase, RANKS))
    orders = []
    for epoch in (1, 2):
        numbers: list[int] = []
        for rank in range(RANKS):
            # WebDataset asks the launcher's variables.
            monkeypatch.setenv("RANK", str(rank))
            monkeypatch.setenv("WORLD_SIZE", str(RANKS))
            loader = loader_of(tmp_path, phase, identity(rank), epoch=epoch, seed=3)
            for found, payloads in loader:
                numbers += found.tolist()
                for number, payload in zip(found.tolist(), payloads, strict=True):
                    assert payload.numpy().tobytes() == payload_of(number, SAMPLE_BYTES)
        assert sorted(numbers) == list(range(SAMPLES))
        orders.append(numbers)
    assert orders[0] != orders[1]


class SlowFiles:
    """A file system that takes its time for one sample."""

    def __init__(self, slow: int, seconds: float) -> None:
        self.slow, self.seconds = slow, seconds

    def __len__(self) -> int:
        return 4

    def __getitem__(self, number: int) -> tuple[int, Any]:
        if number == self.slow:
            time.sleep(self.seconds)
        return number, as_tensor(b"x")


def test_a_slow_sample_is_waited_for_by_its_step() -> None:
    from torch.utils.data import DataLoader

    for workers in (0, 1):
        options = {"prefetch_factor": 1, "persistent_workers": True} if workers else {}
        loader = DataLoader(SlowFiles(2, 0.3), num_workers=workers, batch_size=1, **options)
        epoch = read_epoch(lambda found=loader: found, sleeping(0.0))
        assert (epoch.samples, epoch.payload_bytes, len(epoch.waits_s)) == (4, 4, 4)
        if not workers:
            assert epoch.waits_s[2] >= 0.3
        assert epoch.stall_s >= 0.3
        assert epoch.parts_s["wait"] >= epoch.waits_s[2]


def test_what_a_step_computes_is_no_wait() -> None:
    from torch.utils.data import DataLoader

    loader = DataLoader(SlowFiles(-1, 0.0), batch_size=1)
    epoch = read_epoch(lambda: loader, sleeping(0.05))
    assert epoch.parts_s["compute"] >= 4 * 0.05
    others_s = epoch.parts_s["compute"] + epoch.parts_s["end"]
    assert epoch.stall_s == pytest.approx(epoch.seconds - others_s)


def test_samples_that_are_missing_twice_or_wrong_are_refused() -> None:
    refuse_other_samples([0, 1, 2], [], 3)
    with pytest.raises(RefusedError, match="1 were not read, and 1 more than once"):
        refuse_other_samples([0, 1, 1], [], 3)
    with pytest.raises(RefusedError, match="2 samples are not what was written, the first is 1"):
        refuse_other_samples([0, 1, 2], [1, 2], 3)


@pytest.mark.parametrize(
    ("source", "package"), [("arrow", "datasets"), ("webdataset", "webdataset")]
)
def test_a_missing_package_is_named(
    source: BatchSource, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_files.importlib.util, "find_spec", lambda name: None)
    refuse_missing_package("jsonl")
    refuse_missing_package("files")
    with pytest.raises(RefusedError) as told:
        refuse_missing_package(source)
    assert f"needs the package `{package}`" in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("readers", [1, 2, 7, 64])
def test_each_reader_has_as_many_tar_files(readers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    phase = phase_of("webdataset")
    assert len(tar_files(Path("/mnt"), phase, readers)) == readers
    monkeypatch.setattr(batch_files, "PART_BYTES", 1)
    many = len(tar_files(Path("/mnt"), phase, readers))
    assert many == SAMPLES // readers * readers


def test_files_take_no_more_than_was_said(tmp_path: Path) -> None:
    for source in LIGHT:
        phase = phase_of(source, samples=2000)
        folder = tmp_path / source
        folder.mkdir()
        write_samples(folder, phase, 4)
        written = [path for path in folder.rglob("*") if path.is_file()]
        assert sum(path.stat().st_size for path in written) <= 1.1 * phase.files_bytes


def test_the_percentile_is_one_of_the_waits() -> None:
    assert percentile_s([3.0, 1.0, 2.0], 50) == 2.0
    assert percentile_s([1.0], 99) == 1.0
    assert percentile_s([float(number) for number in range(1, 101)], 99) == 99.0
