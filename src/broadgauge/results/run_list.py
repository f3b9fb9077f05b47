"""Which runs are there, what became of them, and which may be removed?"""

import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from broadgauge.results.elsewhere import elsewhere
from broadgauge.results.folder import disk
from broadgauge.results.folder.lock import is_being_written
from broadgauge.results.folder.reading import PLAN_FILE, read_plan
from broadgauge.results.folder.records_file import RECORDS_FILE, read_records
from broadgauge.results.history import started_unix_s
from broadgauge.results.run_path import newest_first
from broadgauge.specs.errors import RunFolderError
from broadgauge.specs.records.record import Status


class RunStatus(StrEnum):
    """What became of a run, by its folder alone."""

    RUNNING = "running"
    """A process on this machine writes it."""
    COMPLETE = "complete"
    """Each planned trial has a record, be it of a failure."""
    DETACHED = "detached"
    """It goes on in a cluster or on hosts, as far as its folder knows: `run --resume` collects."""
    UNFINISHED = "unfinished"
    """`run --resume` goes on."""
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRun:
    """One run folder, without its figures."""

    folder: Path
    status: RunStatus
    size_bytes: int
    """Of its files, as they are counted by `ls -l`."""
    started_unix_s: float
    experiment_name: str | None = None
    num_planned: int = 0
    """Trials; 0 where it can't be read."""
    num_ok: int = 0
    num_failed: int = 0
    """Failed and timed out; a trial that was skipped is neither."""
    num_stored: int = 0
    """Trials that have a record."""
    problem: str | None = None
    """Why it is unreadable."""
    elsewhere: str | None = None
    """Where it goes on, and what collects it; None: it was left nowhere, or is complete."""


def list_runs(runs_folder: Path) -> tuple[ListedRun, ...]:
    """Every run in this folder, newest first: `last` is the first. Raises RunFolderError."""
    with disk.telling("read", runs_folder):
        folders = newest_first(runs_folder)
    return tuple(_looked_at(folders))


def _looked_at(folders: Sequence[Path]) -> Iterator[ListedRun]:
    """Without those that somebody removes meanwhile."""
    for folder in folders:
        try:
            yield look_at(folder)
        except RunFolderError:
            if (folder / PLAN_FILE).exists():
                raise


def look_at(folder: Path) -> ListedRun:
    """What became of the run of this folder?"""
    with disk.telling("read", folder):
        size_bytes = sum(_sizes(folder))
        started_s = (folder / PLAN_FILE).stat().st_mtime
    try:
        plan, _ = read_plan(folder)
        records = read_records(folder / RECORDS_FILE).records
        started_s = started_unix_s(folder, records)
    except RunFolderError as error:
        return ListedRun(
            folder=folder,
            status=RunStatus.UNREADABLE,
            size_bytes=size_bytes,
            started_unix_s=started_s,
            problem=error.message,
        )
    num_planned = sum(len(launch.trials) for launch in plan.launches)
    counts = Counter(record.status for record in records)
    is_whole = len(records) >= num_planned
    left = None if is_whole else elsewhere(folder)
    return ListedRun(
        folder=folder,
        status=_status(folder, left, is_whole=is_whole),
        size_bytes=size_bytes,
        started_unix_s=started_s,
        experiment_name=plan.experiment_name,
        num_planned=num_planned,
        num_ok=counts[Status.OK],
        num_failed=len(records) - counts[Status.OK] - counts[Status.SKIPPED],
        num_stored=len(records),
        elsewhere=left,
    )


def remove_run(folder: Path) -> None:
    """Removes a run folder and all in it, never what a link in it points to.

    Raises RunFolderError: it is no run folder, a process writes it, or a file can't be removed.
    Where a folder's permissions forbid it, nothing of the run has been removed.
    """
    check_no_link(folder)
    if not (folder / PLAN_FILE).is_file():
        raise RunFolderError(f"{folder} is no run folder: it has no {PLAN_FILE}; it was kept")
    if is_being_written(folder):
        raise RunFolderError(f"{folder} is being written by a run, and was kept")
    _check_removable(folder)
    with disk.telling("remove", folder):
        shutil.rmtree(folder)


def check_no_link(folder: Path) -> None:
    """What a link points to may be another's. Raises RunFolderError."""
    if folder.is_symlink():
        raise RunFolderError(f"{folder} is a link, and was kept", hint="remove the link yourself")


def _check_removable(folder: Path) -> None:
    """All of it, or nothing: half a run can neither be read nor removed. Raises RunFolderError."""
    inside = (Path(path) / name for path, names, _ in os.walk(folder) for name in names)
    for each in (folder.parent, folder, *inside):
        if not each.is_symlink() and not os.access(each, os.R_OK | os.W_OK | os.X_OK):
            raise RunFolderError(
                f"can't remove {folder}, which was kept: {each} may not be changed",
                hint="check the folder's owner and permissions",
            )


def _status(folder: Path, left: str | None, *, is_whole: bool) -> RunStatus:
    if is_being_written(folder):
        return RunStatus.RUNNING
    if is_whole:
        return RunStatus.COMPLETE
    return RunStatus.UNFINISHED if left is None else RunStatus.DETACHED


def _sizes(folder: Path) -> Iterator[int]:
    """A file that goes meanwhile counts nothing."""
    for path in folder.rglob("*"):
        try:
            facts = path.lstat()
        except FileNotFoundError:
            continue
        if not path.is_dir():
            yield facts.st_size
