"""Is a checkpoint whole, whoever writes it? Is the stall told apart from the time to durable?"""

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.driving import wait_until
from tests.probes.harness import Ranks, made_up_counters

from broadgauge.agent.supervisor.descendants import parent_and_state
from broadgauge.merging.merge import merge
from broadgauge.probes.storage.checkpoint import CheckpointMeasurement
from broadgauge.probes.storage.saving import TorchSaver
from broadgauge.specs.case import Case
from broadgauge.specs.launching import NodeCounters, TrialOutcome
from broadgauge.specs.records.file_access_row import FileAccessRow
from broadgauge.specs.records.record import Status
from broadgauge.specs.storages.storage import Storage
from broadgauge.specs.workloads.workload import CheckpointWorkload

MODEL = {"layers": 2, "hidden": 64, "heads": 2, "vocabulary": 256, "seq_len": 32}
WAYS: dict[str, dict[str, Any]] = {
    "replicas, one file": {"format": "torch", "strategy": "ddp"},
    "gathered": {"format": "torch", "strategy": "fsdp"},
    "own files": {"format": "torch", "strategy": "fsdp", "state_dict": "sharded"},
    "safetensors": {"format": "safetensors", "strategy": "ddp"},
    "safetensors, gathered": {"format": "safetensors"},
    "safetensors, own files": {"format": "safetensors", "state_dict": "sharded"},
    "safetensors, weights alone": {"format": "safetensors", "optimizer_state": False},
    "shared out": {"strategy": "ddp"},
    "sharded": {"strategy": "fsdp"},
    "in the background": {"strategy": "fsdp", "asynchronous": True},
    "by a process": {"strategy": "fsdp", "asynchronous": "process"},
    "shared out, by a process": {"strategy": "ddp", "asynchronous": "process"},
    "weights alone": {"strategy": "fsdp", "optimizer_state": False},
}
GATHERED = ("gathered", "safetensors, gathered", "safetensors, weights alone")
ALONE = ("replicas, one file", "safetensors", *GATHERED)
"""Rank 0 writes."""


def workload(way: str) -> CheckpointWorkload:
    asked = {"kind": "storage", "phase": "checkpoint", "model": MODEL, "repetitions": 2}
    return CheckpointWorkload.model_validate(asked | WAYS[way])


def case_of(way: str, folder: Path) -> Case:
    return Case(
        workload=workload(way),
        network=None,
        nodes=1,
        ranks_per_node=2,
        device="cpu",
        backend="gloo",
        environment={},
        storage=Storage(name="disk", path=str(folder)),
    )


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TrialOutcome]:
    folder = tmp_path_factory.mktemp("checkpoints")
    found = {}
    storage = folder / "storage"
    storage.mkdir()
    with Ranks(2, folder, ranks_per_node=2, is_forked=False) as ranks:
        for number, way in enumerate(WAYS):
            case = case_of(way, storage)
            found[way] = ranks.run_trial(case, trial_id=f"t{number}")
            assert found[way].status is Status.OK, ranks.logs()
            assert not list(storage.iterdir()), way
            assert not [each for rank in ranks.ranks for each in saving_beside(rank.process.pid)], (
                way
            )
    return found


def saving_beside(rank: int) -> list[int]:
    """Of its children those that multiprocessing has started to work for it. Each is asked for its
    parent: of a thread that ends meanwhile the kernel's own list lacks those that it started."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    children = [pid for pid in pids if (parent_and_state(pid) or (None,))[0] == rank]
    return [each for each in children if "spawn_main" in command_line(each)]


def command_line(pid: int) -> str:
    """Empty: it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def said(outcome: TrialOutcome) -> list[list[dict[str, Any]]]:
    """The saves of each rank."""
    return [
        [message for message in rank if message.get("kind") == "file_access"]
        for rank in outcome.messages
    ]


def rows_of(way: str, outcome: TrialOutcome) -> tuple[FileAccessRow, ...]:
    return merge(case_of(way, Path("/mnt")), outcome, None).measurement.file_accesses


@pytest.mark.parametrize("way", WAYS)
def test_parts_of_each_rank_add_up(way: str, outcomes: dict[str, TrialOutcome]) -> None:
    for rank in said(outcomes[way]):
        assert len(rank) == 2
        for save in rank:
            assert sum(save["parts_s"].values()) == pytest.approx(save["seconds"])
            assert 0 < save["stall_s"] <= save["seconds"]


@pytest.mark.parametrize("way", WAYS)
def test_the_whole_state_is_written_once(way: str, outcomes: dict[str, TrialOutcome]) -> None:
    state_bytes = workload(way).state_bytes
    for row in rows_of(way, outcomes[way]):
        assert state_bytes <= row.size_bytes < 1.5 * state_bytes
        assert row.operations
        assert len(row.parts_of_ranks) == 2


@pytest.mark.parametrize("way", WAYS)
def test_ranks_write_what_they_should(way: str, outcomes: dict[str, TrialOutcome]) -> None:
    first, second = (rank[0]["size_bytes"] for rank in said(outcomes[way]))
    if way in ALONE:
        assert second == 0
    else:
        assert min(first, second) > 0.2 * workload(way).state_bytes
    assert ("gather" in said(outcomes[way])[1][0]["parts_s"]) == (way in GATHERED)


@pytest.mark.parametrize("way", WAYS)
def test_both_figures_are_there(way: str, outcomes: dict[str, TrialOutcome]) -> None:
    metrics = merge(case_of(way, Path("/mnt")), outcomes[way], None).measurement.metrics
    stall_s, durable_s = metrics["save_stall_s"], metrics["save_durable_s"]
    assert stall_s is not None
    assert durable_s is not None
    assert 0 < stall_s <= durable_s
    assert "read_time_s" not in metrics


class FailingSaver(TorchSaver):
    """Never saves."""

    def __init__(self) -> None:
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


class FailingMeasurement(CheckpointMeasurement):
    def __init__(self) -> None:
        self.saver = FailingSaver()

    def _made(self, name: str) -> Path:
        raise OSError(errno.EIO, os.strerror(errno.EIO), name)


def test_what_saves_beside_a_rank_ends_with_a_trial_that_fails() -> None:
    measurement = FailingMeasurement()
    with pytest.raises(OSError, match="Input/output error"):
        measurement.measure(1)
    assert measurement.saver.is_closed


def test_what_saves_beside_a_rank_ends_with_a_rank_that_is_killed(tmp_path: Path) -> None:
    storage, beside = tmp_path / "storage", list[int]()
    storage.mkdir()

    def kill_one(reading: int) -> NodeCounters:
        """At the first mark: the first save has been read back."""
        if not beside:
            beside.extend(each for rank in ranks.ranks for each in saving_beside(rank.process.pid))
            ranks.ranks[1].process.kill()
        return made_up_counters(reading)

    with Ranks(2, tmp_path, ranks_per_node=2, is_forked=False, counters=kill_one) as ranks:
        failed = ranks.run_trial(case_of("by a process", storage), hear_all=True)
    assert failed.status is Status.FAILED
    assert len(beside) == 2
    wait_until(lambda: all(has_ended(each) for each in beside))


def has_ended(process: int) -> bool:
    """One that nobody has waited for yet is still in the list."""
    try:
        return "State:\tZ" in Path(f"/proc/{process}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
