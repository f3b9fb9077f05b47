"""Does each rank hold what the files hold, whoever reads them, and is told where it came from?"""

from pathlib import Path
from typing import Any

import pytest
from tests.probes.harness import Ranks

from broadgauge.merging.merge import merge
from broadgauge.probes.storage.file_systems import file_system_of
from broadgauge.specs.case import Case
from broadgauge.specs.launching import TrialOutcome
from broadgauge.specs.records.file_access_row import FileAccessRow
from broadgauge.specs.records.record import Status
from broadgauge.specs.storages.storage import Storage
from broadgauge.specs.workloads.workload import ModelLoadWorkload

MODEL = {"layers": 2, "hidden": 128, "heads": 2, "vocabulary": 512, "seq_len": 64}
WAYS: dict[str, dict[str, Any]] = {
    "mapped": {},
    "mapped, warm": {"cache": "warm"},
    "mapped, whole": {"strategy": "ddp", "dtype": "float32"},
    "mapped, sent": {"readers": "rank_0"},
    "read": {"mapped": False},
    "read, sent": {"mapped": False, "readers": "rank_0", "strategy": "ddp"},
    "torch": {"format": "torch"},
    "torch, mapped": {"format": "torch", "mapped": True, "readers": "rank_0"},
    "distributed": {"format": "distributed"},
    "distributed, whole": {"format": "distributed", "strategy": "ddp"},
}


def workload(way: str) -> ModelLoadWorkload:
    asked = {"kind": "storage", "phase": "load", "model": MODEL, "repetitions": 2}
    return ModelLoadWorkload.model_validate(asked | WAYS[way])


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
def storage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("storage")


@pytest.fixture(scope="module")
def outcomes(storage: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, TrialOutcome]:
    """Each trial has compared its first load with what was written, or has failed."""
    found = {}
    with Ranks(2, tmp_path_factory.mktemp("ranks"), ranks_per_node=2) as ranks:
        for number, way in enumerate(WAYS):
            found[way] = ranks.run_trial(case_of(way, storage), trial_id=f"t{number}")
            assert found[way].status is Status.OK, ranks.logs()
            assert not list(storage.iterdir()), way
    return found


def said(outcome: TrialOutcome) -> list[list[dict[str, Any]]]:
    """The loads of each rank."""
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
        for load in rank:
            assert sum(load["parts_s"].values()) == pytest.approx(load["seconds"])
            assert load["stall_s"] == load["seconds"] > 0


@pytest.mark.parametrize("way", WAYS)
def test_the_model_is_counted_once(way: str, outcomes: dict[str, TrialOutcome]) -> None:
    """However many ranks of a machine read it, its disk gives it once."""
    model_bytes = workload(way).model_bytes
    for row in rows_of(way, outcomes[way]):
        assert model_bytes <= row.size_bytes < 1.5 * model_bytes
        assert len(row.parts_of_ranks) == 2


@pytest.mark.parametrize("way", WAYS)
def test_reads_are_cold_or_warm_as_was_asked(
    way: str, outcomes: dict[str, TrialOutcome], storage: Path
) -> None:
    file_system = file_system_of(storage)
    if file_system is None or not file_system.is_counted:
        pytest.skip(f"{storage} is on {file_system}, which counts no reads")
    for row in rows_of(way, outcomes[way]):
        assert row.cache == workload(way).cache, row.evidence
        assert row.device_bytes is not None
        assert (row.device_bytes >= 0.99 * row.size_bytes) == (row.cache == "cold")


@pytest.mark.parametrize("way", WAYS)
def test_only_what_is_read_whole_is_read_by_calls(
    way: str, outcomes: dict[str, TrialOutcome]
) -> None:
    first, second = (rank[0]["operations_count"] for rank in said(outcomes[way]))
    is_sent = workload(way).readers == "rank_0"
    assert bool(first) == (not workload(way).is_mapped)
    assert bool(second) == (not workload(way).is_mapped and not is_sent)


@pytest.mark.parametrize("way", WAYS)
def test_who_reads_nothing_is_sent_all(way: str, outcomes: dict[str, TrialOutcome]) -> None:
    first, second = (rank[0]["parts_s"] for rank in said(outcomes[way]))
    is_sent = workload(way).readers == "rank_0"
    assert ("broadcast" in first, "broadcast" in second) == (is_sent, is_sent)
    assert "read" in first
    assert ("read" in second) == (not is_sent)


@pytest.mark.parametrize("way", WAYS)
def test_its_figures_are_there(way: str, outcomes: dict[str, TrialOutcome]) -> None:
    metrics = merge(case_of(way, Path("/mnt")), outcomes[way], None).measurement.metrics
    time_s, rate = metrics["model_load_s"], metrics["read_gbyte_per_s"]
    assert time_s is not None
    assert rate is not None
    assert min(time_s, rate) > 0
    assert "write_time_s" not in metrics
