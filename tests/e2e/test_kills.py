"""Holds that a run survives a kill anywhere: valid, resumable, nothing left on the machine."""

import os
import signal
from pathlib import Path

import pytest
from tests.e2e.driving import (
    Background,
    kill_if_there,
    only_run,
    records_of,
    run_command,
    tiny,
    wait_until,
)

pytestmark = [pytest.mark.measuring, pytest.mark.slow]

PLATFORMS = [
    pytest.param("emulated", "2x1", marks=pytest.mark.namespaces),
    pytest.param("local", "1x2"),
]
LAUNCHES = 2


def start(folder: Path, platform: str, shapes: str) -> Background:
    text = tiny(platform, shapes, LAUNCHES).replace("steps: 4", "steps: 40")
    (folder / "e.yaml").write_text(text)
    return Background(("run", "e.yaml"), folder)


def planned_trials(platform: str) -> int:
    """Two workloads, on two networks where there are networks."""
    return LAUNCHES * 2 * (2 if platform == "emulated" else 1)


def assert_resume_finishes(folder: Path, platform: str) -> None:
    run = only_run(folder)
    before = records_of(run)
    resumed = run_command("run", "--resume", str(run), folder=folder)
    after = records_of(run)
    assert resumed.returncode == (3 if any(r["status"] != "ok" for r in after) else 0), (
        resumed.stderr
    )
    assert after[: len(before)] == before
    ids = [record["record_id"] for record in after]
    assert len(ids) == len(set(ids)) == planned_trials(platform)
    assert (run / "report.html").stat().st_size > 10_000


@pytest.mark.parametrize(("platform", "shapes"), PLATFORMS)
@pytest.mark.parametrize(
    ("signal_number", "exit_code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_the_tool_is_ended_in_the_middle_of_a_trial(
    empty_folder: Path, platform: str, shapes: str, signal_number: int, exit_code: int
) -> None:
    with start(empty_folder, platform, shapes) as tool:
        tool.wait_for_ranks(2)
        wait_until(lambda: len(records_of(only_run(empty_folder))) >= 1)
        os.kill(tool.process.pid, signal_number)
        code, output = tool.end()
        assert code == exit_code, output
        if signal_number != signal.SIGKILL:
            assert "--resume" in output
        tool.assert_nothing_is_left()
    assert_resume_finishes(empty_folder, platform)


@pytest.mark.parametrize(("platform", "shapes"), PLATFORMS)
@pytest.mark.parametrize("victim", ["broadgauge.probes.", "broadgauge.platforms.supervisor"])
@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_rank_or_the_launcher_is_ended(
    empty_folder: Path, platform: str, shapes: str, victim: str, signal_number: int
) -> None:
    with start(empty_folder, platform, shapes) as tool:
        tool.wait_for_ranks(2)
        wait_until(lambda: len(records_of(only_run(empty_folder))) >= 1)
        os.kill(tool.pids(victim)[0], signal_number)
        code, output = tool.end(timeout_s=240)
        assert code in (0, 3), output
        tool.assert_nothing_is_left()
    records = records_of(only_run(empty_folder))
    assert len(records) == planned_trials(platform)
    failed = [record for record in records if record["status"] != "ok"]
    assert len(failed) <= 1
    if signal_number == signal.SIGKILL:
        assert len(failed) == 1
        assert failed[0]["error"]["kind"] in ("killed", "launcher_lost")


def test_a_hanging_rank_is_a_time_out_and_the_next_case_runs(empty_folder: Path) -> None:
    text = tiny("local", "1x2").replace("launches: 1", "launches: 1\nlimits: {measure_s: 5}")
    (empty_folder / "e.yaml").write_text(text.replace("steps: 4", "steps: 400"))
    with Background(("run", "e.yaml"), empty_folder) as tool:
        ranks = tool.wait_for_ranks(2)
        wait_until(lambda: len(records_of(only_run(empty_folder))) >= 1)
        os.kill(ranks[1], signal.SIGSTOP)
        code, output = tool.end(timeout_s=240)
        assert code == 3, output
        kill_if_there(ranks[1])
        tool.assert_nothing_is_left()
    first, second = records_of(only_run(empty_folder))
    assert first["status"] == "ok"
    assert second["status"] == "timeout"
    assert second["error"]["kind"] == "hung"
    assert second["error"]["rank"] == 1
