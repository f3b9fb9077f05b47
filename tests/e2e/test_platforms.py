"""Holds that one run interleaves two real platforms, also across a kill, and can compare them."""

import json
import os
import signal
from pathlib import Path

import pytest
from tests.e2e.driving import (
    WITHOUT_TORCH,
    Background,
    only_run,
    records_of,
    run_command,
    tiny,
)

SHAPE, LAUNCHES = "1x2", 3


@pytest.mark.namespaces
def test_two_platforms_take_turns_and_go_on_after_a_kill(empty_folder: Path) -> None:
    """Scripted ranks on emulated nodes and on this machine as it is."""
    (empty_folder / "e.yaml").write_text(tiny("[emulated, local]", SHAPE, LAUNCHES))
    lingering = {"LINGER_IN": "measure"}
    with Background(("run", "e.yaml"), empty_folder, WITHOUT_TORCH, lingering) as tool:
        tool.wait_for_logs("lingers in measure", 2)
        os.kill(tool.process.pid, signal.SIGKILL)
        tool.end()
        tool.assert_nothing_is_left()
    run = only_run(empty_folder)
    assert len(records_of(run)) == 1
    resumed = run_command("run", "--resume", str(run), folder=empty_folder, command=WITHOUT_TORCH)
    assert resumed.returncode == 0, resumed.stderr

    records = records_of(run)
    assert [record["status"] for record in records] == ["ok"] * (2 * 2 * LAUNCHES)
    assert [record["network"].split(" on ")[1] for record in records[::2]] == [
        *("emulated", "local"),
        *("local", "emulated"),
        *("emulated", "local"),
    ]
    by_platform = {
        record["network"].split(" on ")[1]: json.loads(
            (run / "environments" / f"{record['environment']}.json").read_text()
        )["platform"]
        for record in records
    }
    assert by_platform == {"emulated": "emulated", "local": "local"}
    assert "a new block begins" not in resumed.stderr

    compared = run_command("compare", str(run), folder=empty_folder)
    assert compared.returncode == 0
    words = " ".join(compared.stdout.split())
    assert "Each case on another platform (B) against the first one's (A)" in words
    assert "train 1x2 one node on local against train 1x2 one node on emulated" in words
