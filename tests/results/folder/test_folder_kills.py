"""Wherever a run is killed, resuming ends with exactly the planned records, each written once.

Children are forked and end without a goodbye at the n-th call that changes the disk, for every n;
a write that is killed leaves its first half.
"""

import itertools
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.engine.fake_platform import FakeClock, FakePlatform, services
from tests.engine.making import COLLECTIVES, TRAIN, a_plan, make_folder, run_in, trial_ids

from broadgauge.engine.growing import Growth, growable
from broadgauge.engine.run import run
from broadgauge.results.folder import series
from broadgauge.results.folder.reading import read_run
from broadgauge.results.folder.records_file import read_records
from broadgauge.results.folder.run_folder import RunFolder
from broadgauge.specs.errors import RunFolderError
from broadgauge.specs.plan import Plan
from broadgauge.specs.records.record import Record

CHANGING = ("open", "write", "fsync", "replace", "rename", "mkdir", "ftruncate", "unlink")
KILLED, ENDED = 9, 0


@pytest.fixture
def plan() -> Plan:
    """Three trials."""
    return a_plan(
        workloads=[{**TRAIN, "networks": ["slow"]}, {**COLLECTIVES, "networks": ["slow"]}],
        launches=1,
    )


def killed_at(number: int, does: Callable[[], object]) -> bool:
    """Does it in a child that is killed at its n-th change of the disk. True: it was."""
    child = os.fork()
    if child == 0:
        calls = itertools.count()
        for name in CHANGING:
            setattr(os, name, dying(name, getattr(os, name), calls, number))
        try:
            does()
            os._exit(ENDED)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (KILLED, ENDED)
    return code == KILLED


def dying(
    name: str, real: Callable[..., Any], calls: "itertools.count[int]", number: int
) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        if next(calls) == number:
            if name == "write":
                real(arguments[0], arguments[1][: len(arguments[1]) // 2])
            os._exit(KILLED)
        return real(*arguments, **named)

    return call


def only_folder(parent: Path) -> Path | None:
    found = list(parent.iterdir()) if parent.exists() else []
    assert len(found) <= 1
    return found[0] if found else None


def resume(path: Path) -> None:
    with RunFolder.open_for_resume(path) as folder:
        run_in(folder)


def check_resumed(path: Path, plan: Plan) -> None:
    """What was stored stays as it is, and only the rest is run."""
    stored = read_run(path).records
    with RunFolder.open_for_resume(path) as folder:
        assert tuple(folder.records) == stored
        _, platform = run_in(folder)
    assert platform.trials == trial_ids(plan)[len(stored) :]
    after = read_run(path)
    assert [record.record_id for record in after.records] == trial_ids(plan)
    assert after.records[: len(stored)] == stored
    assert after.notes == ()
    names = {name for record in after.records for name in record.series.values()}
    assert {f"series/{file.name}" for file in (path / "series").iterdir()} == names
    assert not list(path.rglob("*.part"))
    for record in after.records:
        for name in record.series:
            assert series.read_series(path, record, name) is not None


def test_a_kill_at_any_change_of_the_disk(tmp_path: Path, plan: Plan) -> None:
    def whole_run(parent: Path) -> None:
        with make_folder(parent, plan) as folder:
            run_in(folder)

    num_resumed = 0
    for number in itertools.count():
        parent = tmp_path / str(number)
        if not killed_at(number, lambda parent=parent: whole_run(parent)):
            break
        path = only_folder(parent)
        if path is None:
            continue
        if not (path / "plan.json").exists():
            with pytest.raises(RunFolderError, match=r"has no plan\.json"):
                read_run(path)
            continue
        check_resumed(path, plan)
        num_resumed += 1
    assert num_resumed > 50


def test_a_kill_at_any_change_while_resuming(tmp_path: Path, plan: Plan) -> None:
    for number in itertools.count():
        path = torn_run(tmp_path / str(number), plan)
        if not killed_at(number, lambda path=path: resume(path)):
            break
        check_resumed(path, plan)
    assert number > 20


@pytest.mark.thorough
def test_a_kill_at_any_change_while_a_plan_grows(tmp_path: Path, plan: Plan) -> None:
    """The whole search ends as it would have, and its growth is read as it was stored."""

    def search(folder: RunFolder) -> None:
        clock = FakeClock()
        known = services(clock)
        run(folder.plan, FakePlatform(clock), folder, replace(known, grower=one_more_block))

    def whole_search(parent: Path) -> None:
        with make_folder(parent, growable(plan)) as folder:
            search(folder)

    num_grown = 0
    for number in itertools.count():
        parent = tmp_path / str(number)
        was_killed = killed_at(number, lambda parent=parent: whole_search(parent))
        path = only_folder(parent)
        if path is None or not (path / "plan.json").exists():
            continue
        stored = read_run(path)
        num_grown += bool(stored.plan.growths)
        with RunFolder.open_for_resume(path) as folder:
            search(folder)
        after = read_run(path)
        assert after.notes == ()
        assert len(after.plan.growths) == 2
        assert [record.record_id for record in after.records] == trial_ids(after.plan)
        assert after.records[: len(stored.records)] == stored.records
        if not was_killed:
            break
    assert num_grown > 20


def one_more_block(plan: Plan, records: Sequence[Record]) -> Growth | None:
    if len(plan.growths) == 2:
        return None
    return Growth(cases=plan.cases[:1], num_blocks=1, reason=f"after {len(records)} trials")


def torn_run(parent: Path, plan: Plan) -> Path:
    """One stored trial, one torn line, a series and a half-written file of nobody's."""
    with make_folder(parent, plan) as folder:
        run_in(folder)
    path = folder.path
    records = path / "records.jsonl"
    first, second, _ = records.read_bytes().splitlines(keepends=True)
    records.write_bytes(first + second[:-20])
    (path / "series" / "b0.l1.t1.loss.npy.part").write_bytes(b"half")
    (path / "environments" / "0123456789abcdef.json.part").write_bytes(b"half")
    return path


def stored_in(path: Path) -> tuple[Record, ...]:
    return read_records(path / "records.jsonl").records


def test_a_file_cut_at_any_byte_reads_as_its_whole_lines(tmp_path: Path, plan: Plan) -> None:
    with make_folder(tmp_path, plan) as folder:
        run_in(folder)
    file = folder.path / "records.jsonl"
    whole = stored_in(folder.path)
    data = file.read_bytes()
    ends = [index + 1 for index, byte in enumerate(data) if byte == ord("\n")]
    for length in range(ends[0], len(data) + 1):
        file.write_bytes(data[:length])
        num_whole = sum(end <= length for end in ends)
        read = read_records(file)
        assert read.records == whole[:num_whole]
        assert read.torn_bytes == length - ends[num_whole - 1]


@pytest.mark.parametrize("cut", [1, 2, 3, 50, 700, 1200])
def test_a_file_cut_short_is_mended_and_said(tmp_path: Path, plan: Plan, cut: int) -> None:
    with make_folder(tmp_path, plan) as folder:
        run_in(folder)
    file = folder.path / "records.jsonl"
    file.write_bytes(file.read_bytes()[:-cut])
    assert read_run(folder.path).notes == (
        "a torn last line was ignored: its trial was not stored",
    )
    with RunFolder.open_for_resume(folder.path) as again:
        assert "was cut from records.jsonl: its trial is run again" in again.notes[0]
        assert file.read_bytes().endswith(b"}\n")
    check_resumed(folder.path, plan)


def test_zeros_that_a_power_failure_leaves_are_torn(tmp_path: Path, plan: Plan) -> None:
    with make_folder(tmp_path, plan) as folder:
        run_in(folder)
    file = folder.path / "records.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:2]) + bytes(500) + lines[2][500:])
    check_resumed(folder.path, plan)


def test_an_exception_at_any_change_leaves_nothing_of_the_trial(
    tmp_path: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a second SIGINT does: unlike a kill, it lets the folder tidy up."""
    with make_folder(tmp_path / "whole", plan) as folder:
        run_in(folder)
        stored = folder.records[0]
    for number in itertools.count():
        folder = make_folder(tmp_path / str(number), plan)
        with monkeypatch.context() as patched:
            calls = itertools.count()
            for name in ("open", "write", "fsync", "replace"):
                patched.setattr(os, name, raising(getattr(os, name), calls, number))
            try:
                folder.append(stored, {"loss": (1.0, 2.0), "step_time_s": (3.0,)})
                break
            except KeyboardInterrupt:
                pass
        assert stored_in(folder.path) == ()
        assert not list((folder.path / "series").iterdir())
        assert folder.append(stored, {}).record_id == stored.record_id
        assert len(stored_in(folder.path)) == 1
    assert number >= 14


def raising(
    real: Callable[..., Any], calls: "itertools.count[int]", number: int
) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        if next(calls) == number:
            raise KeyboardInterrupt
        return real(*arguments, **named)

    return call
