"""Holds on GPUs: what was loaded is what was written, bit by bit, as each trial asks itself, and
copies to the GPU are told."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.e2e.driving import only_run, records_of, run_command

pytestmark = [pytest.mark.gpu, pytest.mark.measuring, pytest.mark.timeout(900)]

EXPERIMENT = """\
name: loads
platform: local
cluster: {shapes: [SHAPES], device: cuda}
storages: [{name: disk, path: .}]
workloads:
  - {kind: storage, phase: load, name: safetensors, model: MODEL, mapped: [true, false],
     readers: [every_rank, rank_0], strategy: [ddp, fsdp], repetitions: 2}
  - {kind: storage, phase: load, name: torch, model: MODEL, format: torch, mapped: [true, false],
     repetitions: 2}
  - {kind: storage, phase: load, name: distributed, model: MODEL, format: distributed,
     strategy: [ddp, fsdp], repetitions: 2}
  - {kind: storage, phase: batches, name: batches, samples: 64, sample_size: 1 KiB, workers: [0, 2],
     repetitions: 1}
launches: 1
"""
MODEL = "{layers: 4, hidden: 512, heads: 8}"
Loads = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def shapes() -> tuple[str, ...]:
    """Of as many GPUs as there are."""
    return ("1x1", "1x2")[: torch.cuda.device_count()]


@pytest.fixture(scope="module")
def loads(tmp_path_factory: pytest.TempPathFactory, shapes: tuple[str, ...]) -> Loads:
    folder = tmp_path_factory.mktemp("loads")
    text = EXPERIMENT.replace("MODEL", MODEL).replace("SHAPES", ", ".join(shapes))
    (folder / "e.yaml").write_text(text)
    ran = run_command("run", "e.yaml", folder=folder)
    assert ran.returncode == 0, ran.stderr
    assert not Path(folder / "broadgauge-storage").exists()
    return {(each["workload"], each["shape"]): each for each in records_of(only_run(folder))}


def test_every_way_loads_what_was_written(loads: Loads, shapes: tuple[str, ...]) -> None:
    assert len(loads) == len(shapes) * (8 + 2 + 2 + 2)
    assert {record["status"] for record in loads.values()} == {"ok"}
    for (name, _), record in loads.items():
        if not name.startswith("batches"):
            assert record["metrics"]["model_load_s"] > 0


def test_copies_to_the_gpu_are_a_part_where_files_are_read_whole(loads: Loads) -> None:
    """Pages of a mapped file are read while they are copied there."""
    for (name, _), record in loads.items():
        for row in record["file_accesses"]:
            if "mapped-false" in name:
                assert row["parts_of_ranks"][0]["copy"] > 0
            elif "mapped-true" in name:
                assert row["parts_of_ranks"][0]["read"] > 0
