"""Holds on two GPUs: checkpoints of what they hold are whole, and copies to the host are told."""

from pathlib import Path
from typing import Any

import pytest
from tests.e2e.driving import only_run, records_of, run_command

pytestmark = [pytest.mark.gpu, pytest.mark.measuring, pytest.mark.timeout(900)]

EXPERIMENT = """\
name: saves
platform: local
cluster: {shapes: [1x1, 1x2], device: cuda}
storages: [{name: disk, path: .}]
workloads:
  - {kind: storage, phase: raw, name: raw, size: 64 MiB, repetitions: 2}
  - {kind: storage, phase: checkpoint, name: one, model: MODEL, format: torch,
     strategy: [ddp, fsdp], repetitions: 2}
  - {kind: storage, phase: checkpoint, name: own, model: MODEL, format: torch,
     state_dict: sharded, repetitions: 2}
  - {kind: storage, phase: checkpoint, name: shared, model: MODEL, asynchronous: [false, true],
     strategy: [ddp, fsdp], repetitions: 2}
  - {kind: storage, phase: checkpoint, name: beside, model: MODEL, asynchronous: process,
     strategy: [ddp, fsdp], repetitions: 2}
  - {kind: storage, phase: checkpoint, name: apart, model: MODEL, format: safetensors,
     repetitions: 2}
launches: 1
"""
MODEL = "{layers: 4, hidden: 512, heads: 8}"
Saves = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def saves(tmp_path_factory: pytest.TempPathFactory) -> Saves:
    folder = tmp_path_factory.mktemp("saves")
    (folder / "e.yaml").write_text(EXPERIMENT.replace("MODEL", MODEL))
    ran = run_command("run", "e.yaml", folder=folder)
    assert ran.returncode == 0, ran.stderr
    assert not Path(folder / "broadgauge-storage").exists()
    return {(each["workload"], each["shape"]): each for each in records_of(only_run(folder))}


def test_every_way_saves_and_is_read_back(saves: Saves) -> None:
    assert len(saves) == 2 * 11
    assert {record["status"] for record in saves.values()} == {"ok"}
    for (name, _), record in saves.items():
        if name != "raw":
            metrics = record["metrics"]
            assert 0 < metrics["save_stall_s"] <= metrics["save_durable_s"]


@pytest.mark.parametrize("shape", ["1x1", "1x2"])
@pytest.mark.parametrize("name", ["one-strategy-ddp", "one-strategy-fsdp", "own", "apart"])
def test_copies_to_the_host_are_a_part(saves: Saves, name: str, shape: str) -> None:
    for row in saves[name, shape]["file_accesses"]:
        assert row["parts_s"]["device to host"] > 0


@pytest.mark.parametrize("shape", ["1x1", "1x2"])
@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
@pytest.mark.parametrize("name", ["shared-asynchronous-true", "beside"])
def test_training_goes_on_before_a_file_is_written(
    saves: Saves, name: str, strategy: str, shape: str
) -> None:
    for row in saves[f"{name}-strategy-{strategy}", shape]["file_accesses"]:
        assert row["parts_s"]["stage"] > 0
        for parts_s in row["parts_of_ranks"]:
            assert parts_s["state dict"] + parts_s["stage"] <= row["stall_s"] * (1 + 1e-9)
