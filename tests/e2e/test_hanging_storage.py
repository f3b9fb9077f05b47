"""A storage's mount hangs in the middle of a run: does the run go on, and what is said of it?"""

import signal
from pathlib import Path

import pytest
from tests.e2e.driving import RANK, Background, only_run, records_of, run_command, wait_until
from tests.e2e.test_storages import in_memory
from tests.hanging_mount import Ask, hanging_mount

from broadgauge.messages.waiting_limits import FACTOR_VARIABLE

EXPERIMENT = """\
name: hangs
platform: local
cluster: {shapes: [1x1], device: cpu}
storages:
  - {name: dead, path: DEAD}
  - {name: memory, path: MEMORY}
workloads:
  - {kind: storage, phase: raw, size: 1 MiB, repetitions: 2}
launches: 1
limits: {measure_s: LIMIT}
"""
LIMIT_S = 6
SECOND_MEASURED = 3
"""Files are fsync'd once in the warm-up, and once in each repetition."""


SOON = {FACTOR_VARIABLE: "0.3"}
"""What can't be killed is left sooner."""


def write_experiment(folder: Path, dead: Path, memory: Path, limit: str) -> None:
    text = EXPERIMENT.replace("DEAD", str(dead)).replace("MEMORY", str(memory))
    (folder / "e.yaml").write_text(text.replace("LIMIT", limit))


@pytest.mark.root
def test_a_mount_that_hangs_fails_its_case_alone(tmp_path: Path) -> None:
    """What was measured before stays, and ranks that can't be killed are left."""
    dead = tmp_path / "dead"
    dead.mkdir()
    with in_memory() as memory, hanging_mount(dead, Ask.FSYNC, SECOND_MEASURED) as files:
        write_experiment(tmp_path, dead, memory, f"{LIMIT_S} s")
        ran = run_command("run", "e.yaml", folder=tmp_path)
        assert files.hangs.is_set()
        assert not list(memory.iterdir())
    assert ran.returncode != 0
    records = {record["network"]: record for record in records_of(only_run(tmp_path))}
    assert records["memory"]["status"] == "ok", records["memory"]["error"]
    failed = records["dead"]
    assert failed["status"] == "timeout"
    assert [row["access"] for row in failed["file_accesses"]] == ["write"]
    file = dead / "broadgauge-storage/rank0/raw"
    assert failed["error"]["message"] == (
        f"rank 0: storage `dead` ({dead}) does not answer: fsync of {file} has not come back: "
        f"a mount that hangs?; measure took longer than {LIMIT_S} s; "
        "rank 0 is left behind: what waits in the kernel can't be killed"
    )


@pytest.mark.root
def test_a_run_that_waits_for_a_mount_that_hangs_is_interrupted(empty_folder: Path) -> None:
    dead = empty_folder / "dead"
    dead.mkdir()
    write_experiment(empty_folder, dead, empty_folder, "600 s")
    with (
        hanging_mount(dead, Ask.MKDIR) as files,
        Background(("run", "e.yaml"), empty_folder, environment=SOON) as tool,
    ):
        tool.wait_for_ranks(1)
        wait_until(files.hangs.is_set)
        tool.process.send_signal(signal.SIGINT)
        code, output = tool.end()
        assert code == 130, output
        assert len(tool.pids()) == len(tool.pids(RANK)) == 1
    assert records_of(only_run(empty_folder)) == []
