"""Holds on this machine's disk and in memory, on one node and on two emulated ones: what is written
and read of a storage is what counters say, and nothing is left there."""

import json
import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.driving import (
    COMMAND,
    RANK,
    Background,
    kill_if_there,
    only_run,
    records_of,
    run_command,
    wait_until,
)

from broadgauge.agent.emulated.namespaces import needs_user_namespace
from broadgauge.probes.storage.file_systems import file_system_of
from broadgauge.specs.workloads.workload import GptModel

SIZE = 8 << 20
EXPERIMENT = """\
name: storages
platform: PLATFORM
cluster: {shapes: [SHAPE], device: cpu}
networks: [{name: link, rate_gbps: 1 Gbit/s}]
storages:
  - {name: disk, path: DISK}
  - {name: memory, path: MEMORY}
workloads:
  - {kind: storage, phase: raw, name: raw, size: 8 MiB, cache: [cold, warm], repetitions: 2}
  - {kind: storage, phase: raw, name: direct, size: 8 MiB, direct: true, storages: [disk]}
launches: 1
"""
SAVED = """\
  - {kind: storage, phase: checkpoint, name: gathered, model: MODEL, format: torch, repetitions: 2}
  - {kind: storage, phase: checkpoint, name: own, model: MODEL, repetitions: 2,
     asynchronous: [false, true, process], storages: [SHARED]}
  - {kind: storage, phase: load, name: load, model: MODEL, repetitions: 1}
  - {kind: storage, phase: batches, name: batches, source: files, samples: 64, sample_size: 4 KiB,
     batch_per_rank: 5, repetitions: 2}
"""
MODEL = "{layers: 2, hidden: 128, heads: 2, vocabulary: 512, seq_len: 64}"
MODEL_BYTES = 2 * GptModel(layers=2, hidden=128, heads=2, vocabulary=512, seq_len=64).parameters
STATE_BYTES = 6 * MODEL_BYTES
RAW = ("raw-cache-cold", "raw-cache-warm")
OWN = tuple(f"own-asynchronous-{way}" for way in ("false", "true", "process"))


@contextmanager
def in_memory() -> Iterator[Path]:
    """A folder of this test's own on the tmpfs that every Linux has."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


def experiment(platform: str, shape: str, disk: Path, memory: Path) -> str:
    text = EXPERIMENT.replace("PLATFORM", platform).replace("SHAPE", shape)
    return text.replace("DISK", str(disk)).replace("MEMORY", str(memory))


def with_saves(text: str, shared: str) -> str:
    """`shared`: names of the storages that all nodes see."""
    saved = SAVED.replace("MODEL", MODEL).replace("SHARED", shared)
    return text.replace("launches: 1", f"{saved}launches: 1")


def run(
    folder: Path, platform: str, shape: str, disk: Path
) -> dict[tuple[str, str], dict[str, Any]]:
    """The record of each workload and storage."""
    (disk / "theirs.txt").write_text("kept")
    with in_memory() as here:
        # Emulated nodes have a tmpfs of their own there.
        memory = here if platform == "local" else Path("/dev/shm")
        shared = "disk, memory" if platform == "local" else "disk"
        text = with_saves(experiment(platform, shape, disk, memory), shared)
        (folder / "e.yaml").write_text(text)
        ran = run_command("run", "e.yaml", folder=folder)
        assert ran.returncode == 0, ran.stderr
        assert [path.name for path in disk.iterdir()] == ["theirs.txt"]
        assert not list(here.iterdir())
    plan = json.loads((only_run(folder) / "plan.json").read_text())
    storages = {key: case["storage"]["name"] for key, case in _cases(plan)}
    records = records_of(only_run(folder))
    assert {record["status"] for record in records} == {"ok"}
    return {(each["workload"], storages[each["case_key"]]): each for each in records}


def _cases(plan: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    from broadgauge.specs.plan import Plan

    cases = Plan.model_validate(plan).cases
    return [(case.key, case.model_dump(mode="json")) for case in cases]


def check(found: dict[tuple[str, str], dict[str, Any]], ranks: int, disk: Path) -> None:
    both = {
        (name, where)
        for name in (*RAW, "gathered", "load", "batches")
        for where in ("disk", "memory")
    }
    shared = {(name, where) for name in OWN for where in ("disk", "memory")}
    assert both | {("direct", "disk")} <= set(found) <= both | shared | {("direct", "disk")}
    assert {(name, "disk") for name in OWN} <= set(found)
    for (name, where), record in found.items():
        if name in (*OWN, "gathered"):
            check_saves(record, ranks, is_counted=where == "disk" and is_counted(disk))
            continue
        if name == "load":
            check_load(record, ranks, where, is_counted=is_counted(disk))
            continue
        if name == "batches":
            is_cold = where == "disk" and is_counted(disk)
            check_batches(record, ranks, "cold" if is_cold else None if where == "disk" else "warm")
            continue
        rows = record["file_accesses"]
        assert [row["access"] for row in rows] == ["write"] * (len(rows) // 2) + ["read"] * (
            len(rows) // 2
        )
        for row in rows:
            assert row["size_bytes"] == ranks * SIZE
            assert row["operations"] == ranks * SIZE // (1 << 20)
            assert sum(row["parts_s"].values()) == pytest.approx(row["time_s"])
        reads = [row for row in rows if row["access"] == "read"]
        if where == "memory":
            assert {row["cache"] for row in reads} == {"warm"}
        elif is_counted(disk):
            asked = "warm" if name == "raw-cache-warm" else "cold"
            assert {row["cache"] for row in reads} == {asked}
            for row in reads:
                is_read = row["device_bytes"] >= 0.99 * row["size_bytes"]
                assert is_read == (asked == "cold")
    findings = found["raw-cache-cold", "memory"]["findings"]
    assert "other-cache" in [finding["rule"] for finding in findings]


def check_load(record: dict[str, Any], ranks: int, where: str, *, is_counted: bool) -> None:
    """Half of the machine's ranks read each half of the model, from one file or from copies: once
    all of it in all."""
    (row,) = record["file_accesses"]
    assert MODEL_BYTES <= row["size_bytes"] < 1.5 * MODEL_BYTES
    assert len(row["parts_of_ranks"]) == ranks
    assert sum(row["parts_s"].values()) == pytest.approx(row["time_s"])
    assert record["metrics"]["model_load_s"] == row["time_s"] == row["stall_s"]
    if where == "memory":
        assert row["cache"] == "warm"
    elif is_counted:
        assert row["cache"] == "cold"
        assert row["device_bytes"] >= 0.99 * row["size_bytes"]


def check_saves(record: dict[str, Any], ranks: int, *, is_counted: bool) -> None:
    """That each reads back bit by bit was asked by the ranks: they refuse the trial else."""
    assert len(record["file_accesses"]) == 2
    for row in record["file_accesses"]:
        assert STATE_BYTES <= row["size_bytes"] < 1.5 * STATE_BYTES
        assert row["operations"]
        if is_counted:
            assert row["device_bytes"] >= row["size_bytes"]
        assert len(row["parts_of_ranks"]) == ranks
        assert sum(row["parts_s"].values()) == pytest.approx(row["time_s"])
        assert 0 < row["stall_s"] <= row["time_s"]
    assert 0 < record["metrics"]["save_stall_s"] <= record["metrics"]["save_durable_s"]


def check_batches(record: dict[str, Any], ranks: int, cache: str | None) -> None:
    """That each sample came once was asked by the ranks. `cache`: what was found; None: any."""
    assert len(record["file_accesses"]) == 2
    for row in record["file_accesses"]:
        assert row["size_bytes"] == 64 * 4096
        assert cache in (None, row["cache"])
        assert len(row["waits_s"]) == -(-64 // (5 * ranks))
        assert len(row["parts_of_ranks"]) == ranks
        assert sum(row["parts_s"].values()) == pytest.approx(row["time_s"])
    assert record["metrics"]["wait_per_100_samples_s"] > 0


def is_counted(disk: Path) -> bool:
    file_system = file_system_of(disk)
    return file_system is not None and file_system.is_counted


def test_on_one_node(tmp_path: Path, disk: Path) -> None:
    check(run(tmp_path, "local", "1x2", disk), 2, disk)


@pytest.mark.namespaces
def test_on_two_emulated_nodes(tmp_path: Path, disk: Path) -> None:
    check(run(tmp_path, "emulated", "2x1", disk), 2, disk)


def test_a_storage_that_is_not_there_fails_its_case_alone(tmp_path: Path) -> None:
    with in_memory() as memory:
        text = experiment("local", "1x1", tmp_path / "nowhere", memory)
        (tmp_path / "e.yaml").write_text(text)
        ran = run_command("run", "e.yaml", folder=tmp_path)
    assert ran.returncode != 0
    records = records_of(only_run(tmp_path))
    failed = [record for record in records if record["status"] != "ok"]
    assert {record["network"] for record in failed} == {"disk"}
    for record in failed:
        assert "is not there" in record["error"]["message"]
    assert {record["network"] for record in records if record["status"] == "ok"} == {"memory"}


ON_RAMFS = """\
name: ramfs
platform: local
cluster: {shapes: [1x1], device: cpu}
storages: [{name: memory, path: FOLDER}]
workloads:
  - {kind: storage, name: raw, size: 1 MiB, cache: warm, repetitions: 1}
  - {kind: storage, name: direct, size: 1 MiB, direct: true, repetitions: 1}
launches: 1
"""


@pytest.mark.namespaces
def test_a_file_system_without_direct_requests_is_said_so(tmp_path: Path) -> None:
    """ramfs takes no O_DIRECT on any kernel."""
    storage = tmp_path / "ramfs"
    storage.mkdir()
    (tmp_path / "e.yaml").write_text(ON_RAMFS.replace("FOLDER", str(storage)))
    user = ("--user", "--map-root-user") if needs_user_namespace() else ()
    mounted = f'mount -t ramfs ramfs "{storage}" && exec "$0" "$@"'
    within = ("unshare", *user, "--mount", "sh", "-c", mounted, *COMMAND)
    ran = run_command("run", "e.yaml", folder=tmp_path, command=within)
    assert ran.returncode != 0
    records = {record["workload"]: record for record in records_of(only_run(tmp_path))}
    assert records["raw"]["status"] == "ok", records["raw"]["error"]
    assert records["direct"]["status"] == "failed"
    assert records["direct"]["error"]["kind"] == "refused"
    assert "takes no requests past the page cache" in records["direct"]["error"]["message"]
    assert records["direct"]["error"]["message"] in ran.stdout + ran.stderr


@pytest.mark.namespaces
def test_a_checkpoint_that_nobody_could_load_is_refused(tmp_path: Path) -> None:
    """Nodes have a memory of their own."""
    workload = f"{{kind: storage, phase: checkpoint, model: {MODEL}}}"
    begin, _ = EXPERIMENT.split("  - {name: disk")
    text = f"{begin}  - {{name: memory, path: /dev/shm}}\nworkloads: [{workload}]\nlaunches: 1\n"
    (tmp_path / "e.yaml").write_text(text.replace("PLATFORM", "emulated").replace("SHAPE", "2x1"))
    ran = run_command("run", "e.yaml", folder=tmp_path)
    assert ran.returncode != 0
    (record,) = records_of(only_run(tmp_path))
    assert record["error"]["kind"] == "refused"
    assert "nodes do not share /dev/shm" in record["error"]["message"]
    assert record["findings"] == []  # its words say it all: nothing of it is a crash
    log = (only_run(tmp_path) / "logs" / "b0.l0.rank0.log").read_text()
    assert "refused: nodes do not share /dev/shm" in log
    assert "Traceback" not in log


LONG = """\
name: saves
platform: local
cluster: {shapes: [1x1], device: cpu}
storages: [{name: disk, path: disk}]
workloads:
  - {kind: storage, phase: checkpoint, model: MODEL, format: torch, repetitions: 100}
launches: 1
"""


def test_a_run_that_is_killed_while_it_saves_is_resumed(empty_folder: Path) -> None:
    """What it left on the storage is removed by the next that works there, and nothing else is."""
    disk = empty_folder / "disk"
    disk.mkdir()
    (disk / "theirs.txt").write_text("kept")
    (empty_folder / "e.yaml").write_text(LONG.replace("MODEL", MODEL))
    with Background(("run", "e.yaml"), empty_folder) as tool:
        wait_until(lambda: any(disk.glob("*/rank0/save*")))
        pids = (*tool.pids(RANK), *tool.pids())
        for pid in pids:  # at once: none sees another's end
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        for pid in pids:
            kill_if_there(pid)
        tool.end()
    assert list(disk.glob("*/rank0/*"))
    assert records_of(only_run(empty_folder)) == []
    resumed = run_command("run", "--resume", str(only_run(empty_folder)), folder=empty_folder)
    assert resumed.returncode == 0, resumed.stderr
    (record,) = records_of(only_run(empty_folder))
    assert record["status"] == "ok"
    assert len(record["file_accesses"]) == 100
    assert [path.name for path in disk.iterdir()] == ["theirs.txt"]
