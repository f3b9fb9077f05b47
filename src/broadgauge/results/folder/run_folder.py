"""Where does a run live? One folder, locked while it is written, valid at every moment.

runs/<experiment>-<utc time>/
  experiment.yaml            the resolved experiment
  plan.json                  seed, cases, schedule; written last, so a folder with it is whole
  plan_growth.jsonl          what was added to the plan while it ran, a line each time, if anything
  records.jsonl              one line a trial, synced when the trial ends
  series/<trial>.<name>.npy  synced before their record
  artifacts/<trial>.<name>   files that trials left, the same; if any did
  environments/<hash>.json   what records' figures depend on, synced before them
  logs/                      of the ranks
  lock                       held by the process that writes

Its owner alone can enter it. No value of a secret is in it (specs/secrets/values.py).
"""

import hashlib
import itertools
import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from broadgauge.messages.rank import Artifact
from broadgauge.results.folder import artifacts, disk
from broadgauge.results.folder.artifacts import keep_artifacts, remove_artifacts
from broadgauge.results.folder.growth_file import (
    GROWTH_FILE,
    growth_line,
    read_growth,
    stored_cases,
)
from broadgauge.results.folder.lock import FolderLock
from broadgauge.results.folder.reading import (
    ENVIRONMENTS_FOLDER,
    EXPERIMENT_FILE,
    PLAN_FILE,
    find_run,
    newest_schema,
    read_environments,
    read_plan,
    read_text,
)
from broadgauge.results.folder.record_line import record_line
from broadgauge.results.folder.records_file import RECORDS_FILE, RecordsFile, read_records
from broadgauge.results.folder.series import (
    SERIES_FOLDER,
    SeriesValues,
    remove_orphans,
    remove_series,
    write_series,
)
from broadgauge.specs.errors import RunFolderError
from broadgauge.specs.plan import Plan
from broadgauge.specs.records.record import SCHEMA_VERSION, Environment, Record

LOGS_FOLDER = "logs"
MIN_FREE_BYTES = 8_000_000
"""Of an empty disk; a few hundred records with their series and logs."""


class RunFolder:
    """A run folder that this process may write. Made by `create` or `open_for_resume`."""

    def __init__(
        self,
        path: Path,
        *,
        lock: FolderLock,
        plan: Plan,
        experiment_yaml: str,
        records_file: RecordsFile,
        growth_file: RecordsFile | None = None,
        records: Sequence[Record] = (),
        environments: Mapping[str, Environment] | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        self.path = path
        self.plan = plan
        self.experiment_yaml = experiment_yaml
        self.notes = tuple(notes)
        self._lock = lock
        self._records_file = records_file
        self._growth_file = growth_file
        """None: the plan has not grown."""
        self._records = list(records)
        self._ids = {record.record_id for record in records}
        self._environments = dict(environments or {})

    @classmethod
    def create(
        cls,
        parent: Path,
        *,
        plan: Plan,
        experiment_yaml: str,
        started_unix_s: float,
        min_free_bytes: int = MIN_FREE_BYTES,
    ) -> Self:
        """A new folder in `parent`, which is made if need be. Raises RunFolderError."""
        path = _make_folder(parent, plan.experiment_name, started_unix_s)
        with ExitStack() as undo:
            # A run that never began leaves no folder. It was made exclusively, so it is ours.
            undo.callback(shutil.rmtree, path, ignore_errors=True)
            disk.check_free_space(path, min_free_bytes)
            lock = FolderLock(path)
            undo.callback(lock.release)
            with disk.telling("write", path):
                for name in (SERIES_FOLDER, ENVIRONMENTS_FOLDER, LOGS_FOLDER):
                    (path / name).mkdir(disk.PRIVATE_FOLDER)
                disk.write_whole(path / EXPERIMENT_FILE, experiment_yaml.encode())
                records_file = RecordsFile(path / RECORDS_FILE, 0)
                undo.callback(records_file.close)
                disk.write_whole(path / PLAN_FILE, _plan_json(plan))
                disk.sync_folder(path.parent)
            undo.pop_all()
        return cls(
            path, lock=lock, plan=plan, experiment_yaml=experiment_yaml, records_file=records_file
        )

    @classmethod
    def open_for_resume(cls, path: Path) -> Self:
        """An existing folder, repaired: torn last line cut, series without a record removed.

        `notes` says what was repaired. Raises RunFolderError where it is locked, of a newer schema,
        broken, or not writable.
        """
        folder = find_run(path)
        lock = FolderLock(folder)
        try:
            plan, notes = read_plan(folder)
            read = read_records(folder / RECORDS_FILE)
            _refuse_newer(folder, newest_schema(plan, read.records))
            repaired = _repair(folder, plan, read.records)
            environments, environment_notes = read_environments(folder)
            if read.torn_bytes:
                cut = f"a torn last line of {read.torn_bytes} bytes was cut from {RECORDS_FILE}"
                repaired = (f"{cut}: its trial is run again", *repaired)
            return cls(
                folder,
                lock=lock,
                plan=plan,
                experiment_yaml=read_text(folder / EXPERIMENT_FILE),
                records_file=RecordsFile(folder / RECORDS_FILE, read.good_bytes),
                growth_file=_growth_file(folder),
                records=read.records,
                environments=environments,
                notes=(*notes, *environment_notes, *repaired),
            )
        except BaseException:
            lock.release()
            raise

    @property
    def location(self) -> str:
        """As the user would type it."""
        try:
            return str(self.path.relative_to(Path.cwd()))
        except (ValueError, OSError):
            return str(self.path)

    @property
    def log_folder(self) -> Path:
        return self.path / LOGS_FOLDER

    @property
    def records(self) -> Sequence[Record]:
        """All that are stored, in the order written."""
        return tuple(self._records)

    @property
    def environments(self) -> Mapping[str, Environment]:
        """By hash."""
        return self._environments

    def add_environment(self, environment: Environment) -> str:
        """Stores it, once, and returns its hash."""
        form = environment.model_dump(mode="json")
        text = json.dumps(form, sort_keys=True, separators=(",", ":"))
        name = hashlib.sha256(text.encode()).hexdigest()[:16]
        if name not in self._environments:
            path = self.path / ENVIRONMENTS_FOLDER / f"{name}.json"
            with disk.telling("write", path):
                disk.write_whole(path, json.dumps(form, sort_keys=True, indent=1).encode())
            self._environments[name] = environment
        return name

    def keep_growth(self, plan: Plan) -> None:
        """Stores what the plan has grown by, for good; it is this folder's plan from then on."""
        line = growth_line(self.plan, plan)
        if self._growth_file is None:
            self._growth_file = RecordsFile(self.path / GROWTH_FILE, 0)
            disk.sync_folder(self.path)
        self._growth_file.append(line)
        self.plan = plan

    def append(
        self,
        record: Record,
        series: Mapping[str, SeriesValues],
        left: Sequence[Artifact] = (),
    ) -> Record:
        """Stores a trial: files first, then its line; all of it, or (an exception) nothing.

        Returns the record as stored: with its series' paths, cut to 64 KiB, without NaN.
        """
        if record.record_id in self._ids:
            raise RunFolderError(f"trial {record.record_id} is in {self.path} already")
        before = self._records_file.good_bytes
        try:
            paths = write_series(self.path, record.record_id, series)
            kept = keep_artifacts(self.path, record.record_id, left)
            files = {"series": paths, "artifacts": kept}
            line, stored = record_line(record.model_copy(update=files))
            self._records_file.append(line)
        except BaseException:
            if self._records_file.good_bytes == before:
                remove_series(self.path, record.record_id)
                remove_artifacts(self.path, record.record_id)
            raise
        self._ids.add(stored.record_id)
        self._records.append(stored)
        return stored

    def close(self) -> None:
        """Lets others write. Safe to call twice."""
        self._records_file.close()
        if self._growth_file is not None:
            self._growth_file.close()
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _growth_file(folder: Path) -> RecordsFile | None:
    """Its torn last line cut; None: the plan has not grown."""
    path = folder / GROWTH_FILE
    return RecordsFile(path, len(read_growth(path).good)) if path.exists() else None


def _plan_json(plan: Plan) -> bytes:
    """What is stored of a plan."""
    plain = plan.model_dump(mode="json")
    plain["cases"] = stored_cases(plan.cases)
    return json.dumps(plain, indent=1, ensure_ascii=False).encode()


def _make_folder(parent: Path, experiment_name: str, started_unix_s: float) -> Path:
    """A folder that was not there before: `<experiment>-20261231T235959Z`, then `…-2`, `…-3`."""
    stamp = datetime.fromtimestamp(started_unix_s, UTC).strftime("%Y%m%dT%H%M%SZ")
    with disk.telling("make", parent):
        parent.mkdir(parents=True, exist_ok=True)
        parent = parent.resolve()
    for number in itertools.count(1):
        suffix = "" if number == 1 else f"-{number}"
        path = parent / f"{experiment_name}-{stamp}{suffix}"
        with disk.telling("make", path):
            try:
                path.mkdir(disk.PRIVATE_FOLDER)
            except FileExistsError:
                continue
        return path
    raise AssertionError


def _refuse_newer(folder: Path, newest: int) -> None:
    if newest > SCHEMA_VERSION:
        raise RunFolderError(
            f"{folder} was written by a newer Broadgauge (schema {newest}, "
            f"this one writes {SCHEMA_VERSION})",
            hint="resume it with the newer one; this one can show it",
        )


def _repair(folder: Path, plan: Plan, records: Sequence[Record]) -> tuple[str, ...]:
    """Remove what a killed process left, and say so. Empty folders get lost in copies."""
    for name in (SERIES_FOLDER, ENVIRONMENTS_FOLDER, LOGS_FOLDER):
        with disk.telling("make", folder / name):
            (folder / name).mkdir(disk.PRIVATE_FOLDER, exist_ok=True)
    trial_ids = [trial.trial_id for launch in plan.launches for trial in launch.trials]
    removed = remove_orphans(folder, trial_ids, records)
    removed_artifacts = artifacts.remove_orphans(folder, trial_ids, records)
    for place in (folder, folder / ENVIRONMENTS_FOLDER):
        for part in place.glob(f"*{disk.PART}"):
            disk.remove(part)
    counted = ((removed, "series"), (removed_artifacts, "artifacts"))
    return tuple(f"{n} {what} without a record were removed" for n, what in counted if n)
