"""Holds that a run survives a kill anywhere: valid, resumable, nothing left on the machine.

Scripted ranks without torch stay in one phase until something is killed there; real ones are
killed in the middle of a step. Each phase, signal and victim is here once; the whole matrix and
real ranks, which take long to start, are marked `thorough`.
"""

import itertools
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.driving import (
    RANK,
    SCRIPTED_RANK,
    SUPERVISOR,
    WITHOUT_TORCH,
    Background,
    only_run,
    records_of,
    run_command,
    tiny,
    wait_until,
)

SHAPES = {"emulated": "2x1", "local": "1x2"}
PHASES = ("rendezvous", "warm_up", "measure", "teardown")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
EXIT_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -signal.SIGKILL}
TOOL_CASES = {
    *(("emulated", phase, signal.SIGKILL) for phase in PHASES),
    ("emulated", "measure", signal.SIGTERM),
    ("local", "measure", signal.SIGINT),
}
"""Of the tool being ended, those that are not `thorough`."""
OTHER_CASES = {
    (RANK, "emulated", "measure", signal.SIGKILL),
    (RANK, "local", "teardown", signal.SIGINT),
    (SUPERVISOR, "emulated", "warm_up", signal.SIGKILL),
    (SUPERVISOR, "local", "measure", signal.SIGTERM),
}
"""Of a rank or the launcher being ended."""


def matrix(*axes: tuple[Any, ...], kept: set[tuple[Any, ...]]) -> list[Any]:
    """Every combination; those that are not kept are thorough."""
    params = []
    for values in itertools.product(*axes):
        marks = [] if values in kept else [pytest.mark.thorough]
        marks += [pytest.mark.namespaces] if "emulated" in values else []
        names = [value.name if isinstance(value, signal.Signals) else value for value in values]
        params.append(pytest.param(*values, marks=marks, id="-".join(names)))
    assert kept <= set(itertools.product(*axes))
    return params


def start(
    folder: Path, platform: str, phase: str, *, text: str | None = None, **lingering: str
) -> Background:
    """Scripted ranks, of which the second trial stays in this phase."""
    (folder / "e.yaml").write_text(text or tiny(platform, SHAPES[platform]))
    environment = {"LINGER_IN": phase, **lingering}
    return Background(("run", "e.yaml"), folder, WITHOUT_TORCH, environment)


def wait_for_phase(tool: Background, phase: str, num_ranks: int = 2) -> None:
    tool.wait_for_logs(f"lingers in {phase}", num_ranks)
    assert len(records_of(only_run(tool.folder))) == 1


def planned_trials(platform: str) -> int:
    """Two workloads, on two networks where there are networks."""
    return 2 * (2 if platform == "emulated" else 1)


def assert_resume_finishes(folder: Path, platform: str, **options: Any) -> None:
    run = only_run(folder)
    before = records_of(run)
    resumed = run_command("run", "--resume", str(run), folder=folder, **options)
    after = records_of(run)
    assert resumed.returncode == (3 if any(r["status"] != "ok" for r in after) else 0), (
        resumed.stderr
    )
    assert after[: len(before)] == before
    ids = [record["record_id"] for record in after]
    assert len(ids) == len(set(ids)) == planned_trials(platform)
    assert (run / "report.html").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("platform", "phase", "signal_number"),
    matrix(tuple(SHAPES), PHASES, SIGNALS, kept=TOOL_CASES),
)
def test_the_tool_is_ended(
    empty_folder: Path, platform: str, phase: str, signal_number: signal.Signals
) -> None:
    with start(empty_folder, platform, phase) as tool:
        wait_for_phase(tool, phase)
        os.kill(tool.process.pid, signal_number)
        code, output = tool.end()
        assert code == EXIT_CODES[signal_number], output
        if signal_number != signal.SIGKILL:
            assert "--resume" in output
        tool.assert_nothing_is_left()
    assert_resume_finishes(empty_folder, platform, command=WITHOUT_TORCH)


@pytest.mark.parametrize(
    ("victim", "platform", "phase", "signal_number"),
    matrix((RANK, SUPERVISOR), tuple(SHAPES), PHASES, SIGNALS, kept=OTHER_CASES),
)
def test_a_rank_or_the_launcher_is_ended(
    empty_folder: Path, victim: str, platform: str, phase: str, signal_number: signal.Signals
) -> None:
    with start(empty_folder, platform, phase) as tool:
        wait_for_phase(tool, phase)
        os.kill(tool.pids(SCRIPTED_RANK if victim == RANK else victim)[0], signal_number)
        code, output = tool.end()
        assert code == 3, output
        tool.assert_nothing_is_left()
    records = records_of(only_run(empty_folder))
    assert len(records) == planned_trials(platform)
    (failed,) = [record for record in records if record["status"] != "ok"]
    assert failed is records[1]
    if signal_number == signal.SIGKILL:
        assert failed["error"]["kind"] == ("killed" if victim == RANK else "launcher_lost")


def test_a_hanging_rank_is_a_time_out_and_the_next_case_runs(empty_folder: Path) -> None:
    text = tiny("local", "1x2", launches=2) + "limits: {measure_s: 2}\n"
    with start(empty_folder, "local", "measure", text=text, LINGER_RANK="1") as tool:
        wait_for_phase(tool, "measure", num_ranks=1)
        os.kill(tool.pids(SCRIPTED_RANK)[1], signal.SIGSTOP)
        code, output = tool.end()
        assert code == 3, output
        tool.assert_nothing_is_left()
    records = records_of(only_run(empty_folder))
    assert [record["status"] for record in records] == ["ok", "timeout", "ok", "ok"]
    assert records[1]["error"]["kind"] == "hung"
    assert records[1]["error"]["rank"] == 1


def start_real(folder: Path) -> Background:
    text = tiny("emulated", "2x1").replace("steps: 4", "steps: 400")
    (folder / "e.yaml").write_text(text)
    return Background(("run", "e.yaml"), folder)


def wait_for_real_trial(tool: Background) -> list[int]:
    """The ranks, in the middle of the second trial."""
    ranks = tool.wait_for_ranks(2)
    wait_until(lambda: len(records_of(only_run(tool.folder))) >= 1)
    return ranks


@pytest.mark.thorough
@pytest.mark.measuring
@pytest.mark.namespaces
def test_the_tool_is_ended_in_the_middle_of_a_real_trial(empty_folder: Path) -> None:
    with start_real(empty_folder) as tool:
        wait_for_real_trial(tool)
        os.kill(tool.process.pid, signal.SIGINT)
        code, output = tool.end()
        assert code == 130, output
        tool.assert_nothing_is_left()
    assert_resume_finishes(empty_folder, "emulated")


@pytest.mark.thorough
@pytest.mark.measuring
@pytest.mark.namespaces
def test_a_real_rank_is_killed(empty_folder: Path) -> None:
    """Its peer says that the connection was closed, and is not taken for the cause."""
    with start_real(empty_folder) as tool:
        os.kill(wait_for_real_trial(tool)[0], signal.SIGKILL)
        code, output = tool.end()
        assert code == 3, output
        tool.assert_nothing_is_left()
    records = records_of(only_run(empty_folder))
    assert len(records) == planned_trials("emulated")
    (failed,) = [record for record in records if record["status"] != "ok"]
    assert failed["error"]["kind"] == "killed"
