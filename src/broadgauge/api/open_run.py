"""Which stored run is meant, and which are there?"""

import os

from broadgauge.api.asking import path_of
from broadgauge.api.stored_run import Run, open_at
from broadgauge.api.table import Table
from broadgauge.results.run_list import ListedRun
from broadgauge.results.run_list import list_runs as runs_in
from broadgauge.results.run_path import RUNS_FOLDER
from broadgauge.results.tables import Cell, CellKind, ExportColumn, ExportTable
from broadgauge.specs.errors import RunFolderError

COLUMNS: dict[str, CellKind] = {
    "run": "text",
    "folder": "text",
    "experiment": "text",
    "status": "text",
    "started_unix_s": "number",
    "num_planned": "integer",
    "num_stored": "integer",
    "num_ok": "integer",
    "num_failed": "integer",
    "size_bytes": "integer",
    "problem": "text",
    "elsewhere": "text",
}


def open_run(
    run: str | os.PathLike[str] = "last", *, runs_folder: str | os.PathLike[str] = RUNS_FOLDER
) -> Run:
    """Reads a run folder; `broadgauge show` in Python.

    run: its folder, `"last"` (the newest in `runs_folder`), `"last~1"` (the one before), or how its
        name there begins. A run that still goes on is read as far as it is.

    Raises RunFolderError where there is none, several are meant, or it can't be read.

    Example: `broadgauge.open_run("last").records.to_pandas()`
    """
    return open_at(run, runs_folder)


def list_runs(runs_folder: str | os.PathLike[str] = RUNS_FOLDER) -> Table:
    """One row a run in this folder, newest first; `broadgauge runs` in Python.

    Columns: run (its folder's name), folder (which open_run takes), experiment, status (running,
    complete, detached, unfinished, unreadable), started_unix_s, num_planned, num_stored, num_ok
    and num_failed trials, size_bytes of all files, problem (why it is unreadable, else None),
    elsewhere (where a run that is not complete was left, and what collects it, else None).

    Raises RunFolderError where the folder of runs is not there.

    Example: `broadgauge.list_runs().to_pandas()`
    """
    parent = path_of("runs_folder", runs_folder)
    if not parent.is_dir():
        raise RunFolderError(
            f"there is no folder {parent}", hint="begin with run(…), or name another: runs_folder=…"
        )
    columns = tuple(ExportColumn(name=name, kind=kind) for name, kind in COLUMNS.items())
    return Table("runs", ExportTable(columns=columns, rows=tuple(map(_row, runs_in(parent)))))


def _row(found: ListedRun) -> tuple[Cell, ...]:
    row: dict[str, Cell] = {
        "run": found.folder.name,
        "folder": str(found.folder),
        "experiment": found.experiment_name,
        "status": found.status.value,
    }
    return tuple(row[name] if name in row else getattr(found, name) for name in COLUMNS)
