"""Are trials that are skipped for one reason told once, with their number?"""

import io
import re
from pathlib import Path

from rich.console import Console
from tests.engine.fake_platform import Failure, Script
from tests.engine.making import COMMAND, TRAIN, a_plan, make_folder, run_in
from tests.report.sample_storages import LOAD, SAVE, WORKLOADS, storage_run

from broadgauge.api.progress import Progress, Watching
from broadgauge.cli.progress import PlainLines
from broadgauge.engine.events import RecordWritten, RunEnded
from broadgauge.report.lines.progress import outcome
from broadgauge.running.events import RunEvent
from broadgauge.specs.records.record import ErrorKind, Status

FAILURE = Failure(kind=ErrorKind.CRASHED, rank=1, frame="train.py:9 in step", message="no data")


def events(folder: Path, num_failing: int) -> list[RunEvent]:
    """Of a run in which the first cases fail at a line of their own."""
    plan = a_plan(workloads=[TRAIN, COMMAND], launches=5)
    failing = [case.key for case in plan.cases][: num_failing or None]
    trials = [trial for launch in plan.launches for trial in launch.trials]
    script = Script(failures={t.trial_id: FAILURE for t in trials if t.case_key in failing})
    told: list[RunEvent] = []
    run_in(make_folder(folder, plan), script, observer=told.append)
    return told


def num_skipped(told: list[RunEvent]) -> int:
    records = [event.record for event in told if isinstance(event, RecordWritten)]
    return sum(record.status is Status.SKIPPED for record in records)


def lines_of(told: list[RunEvent]) -> list[str]:
    stream = io.StringIO()
    with PlainLines(Console(file=stream, width=120)) as display:
        for event in told:
            display(event)
    return stream.getvalue().splitlines()


def test_trials_skipped_one_after_the_other_are_one_line(tmp_path: Path) -> None:
    told = events(tmp_path, 0)
    count = num_skipped(told)
    assert count > 8
    (line,) = [line for line in lines_of(told) if "SKIPPED" in line]
    assert f": SKIPPED {count} trials, not run, since it failed so before: no data" in line


def test_a_reason_is_told_once_among_trials_that_succeed(tmp_path: Path) -> None:
    told = events(tmp_path, 1)
    first, *others = [line for line in lines_of(told) if "SKIPPED" in line]
    assert first.endswith("SKIPPED not run, since it failed so before: no data")
    assert others
    assert all(re.search(r": SKIPPED (\d+ trials, )?as before$", line) for line in others)


def test_they_are_told_where_the_run_was_cut_off(tmp_path: Path) -> None:
    *told, last = events(tmp_path, 0)
    assert isinstance(last, RunEnded)
    assert sum("SKIPPED" in line for line in lines_of(told)) == 1


def test_python_tells_them_alike(tmp_path: Path) -> None:
    heard: list[Progress] = []
    watching = Watching(heard.append)
    told = events(tmp_path, 0)
    for event in told:
        watching(event)
    assert [str(each) for each in heard] == lines_of(told)


def test_a_line_has_the_figure_that_speaks_for_its_kind() -> None:
    """Whatever else a record has, and in whatever order."""
    run = storage_run(workloads=[*WORKLOADS[:1], SAVE, LOAD])
    told = []
    for summary in run.cases:
        record = summary.records[0]
        turned = record.model_copy(update={"metrics": dict(reversed(record.metrics.items()))})
        told.append({outcome(summary.case, each) for each in (record, turned)})
    assert told == [{"read 1 GB/s"}, {"read 2 GB/s"}] + 2 * [{"save stall 7 s"}] + 2 * [
        {"model load 4 s"}
    ]
