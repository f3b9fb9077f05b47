"""What does a run folder hold? Read without a lock, also while another process writes it."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from broadgauge.results.folder import disk
from broadgauge.results.folder.artifacts import artifact_notes
from broadgauge.results.folder.growth_file import GROWTH_FILE, ReadGrowth, added_to, read_growth
from broadgauge.results.folder.older_secrets import take_from_plan, with_stored_keys, without_values
from broadgauge.results.folder.records_file import RECORDS_FILE, read_records
from broadgauge.results.folder.unreadable import HINT, why_unreadable
from broadgauge.specs.base import AS_STORED
from broadgauge.specs.errors import RunFolderError
from broadgauge.specs.plan import Plan
from broadgauge.specs.records.record import SCHEMA_VERSION, Environment, Record

PLAN_FILE = "plan.json"
EXPERIMENT_FILE = "experiment.yaml"
ENVIRONMENTS_FOLDER = "environments"
_LAUNCH_ID = re.compile(r"b\d{1,6}\.l\d{1,6}")
_TRIAL_ID = re.compile(rf"{_LAUNCH_ID.pattern}\.t\d{{1,6}}")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """A run as it stands in its folder."""

    folder: Path
    plan: Plan
    plan_sha256: str
    """Of its bytes, and of those that it has grown by."""
    experiment_yaml: str
    records: tuple[Record, ...]
    records_sha256: str
    """Of the bytes of whole lines."""
    environments: Mapping[str, Environment]
    """By hash."""
    notes: tuple[str, ...]
    """What a reader must know of the folder, in sentences."""


def read_run(path: Path) -> StoredRun:
    """What is stored in this run folder? Raises RunFolderError."""
    folder = find_run(path)
    read = read_records(folder / RECORDS_FILE)  # first: a plan may grow, and is ahead of them
    plan_text, growth = read_text(folder / PLAN_FILE), read_growth(folder / GROWTH_FILE)
    plan, plan_notes = parse_plan(plan_text, growth, folder / PLAN_FILE)
    environments, environment_notes = read_environments(folder)
    notes = [*plan_notes, *environment_notes]
    if read.torn_bytes:
        notes.append("a torn last line was ignored: its trial was not stored")
    newest = newest_schema(plan, read.records)
    if newest > SCHEMA_VERSION:
        notes.append(f"written by a newer Broadgauge (schema {newest}): what it added is ignored")
    notes += _record_notes(folder, plan, read.records, environments)
    return StoredRun(
        folder=folder,
        plan=plan,
        plan_sha256=hashlib.sha256(plan_text.encode() + growth.good).hexdigest(),
        experiment_yaml=without_values(read_text(folder / EXPERIMENT_FILE), EXPERIMENT_FILE),
        records=read.records,
        records_sha256=read.sha256,
        environments=environments,
        notes=tuple(notes),
    )


def find_run(path: Path) -> Path:
    """The run folder itself, its links resolved. Raises RunFolderError where there is none."""
    with disk.telling("read", path):
        if not _is_there(path):
            what = "is a link to nothing" if path.is_symlink() else "does not exist"
            raise RunFolderError(
                f"{path} {what}", hint="`broadgauge runs` lists the runs under runs/"
            )
        folder = path.resolve()
        if not folder.is_dir():
            raise RunFolderError(f"{path} is a file", hint="a run is the folder that holds it")
        if (folder / PLAN_FILE).exists():
            return folder
        runs = sorted(folder.glob(f"*/{PLAN_FILE}"), key=lambda plan: plan.stat().st_mtime)
    raise RunFolderError(
        f"{path} is no run folder: it has no {PLAN_FILE}",
        hint=f"the newest run in it: {path / runs[-1].parent.name}" if runs else None,
    )


def _is_there(path: Path) -> bool:
    """False where nothing is; a loop of links or a locked folder raises OSError."""
    try:
        path.stat()
    except FileNotFoundError:
        return False
    return True


def read_text(path: Path) -> str:
    """A UTF-8 file of the run folder."""
    try:
        with disk.telling("read", path):
            return disk.read_whole(path).decode()
    except UnicodeDecodeError as error:
        raise RunFolderError(f"{path} is not UTF-8 text: {error}") from error


def read_plan(folder: Path) -> tuple[Plan, tuple[str, ...]]:
    """The plan, and a note where keys were ignored that a newer version wrote."""
    path = folder / PLAN_FILE
    return parse_plan(read_text(path), read_growth(folder / GROWTH_FILE), path)


def parse_plan(text: str, growth: ReadGrowth, path: Path) -> tuple[Plan, tuple[str, ...]]:
    """The same of the text of this file, and of what it has grown by."""
    value: object = None
    try:
        value = added_to(from_json(text), growth)
        with_secrets = take_from_plan(value)
        plan = with_stored_keys(Plan.model_validate(value, context=AS_STORED), with_secrets)
    except ValueError as error:
        raise RunFolderError(
            f"{path} is no plan that this version reads: {why_unreadable(error, value)}", hint=HINT
        ) from error
    for launch in plan.launches:
        ids_fit = all(_TRIAL_ID.fullmatch(trial.trial_id) for trial in launch.trials)
        if not ids_fit or not _LAUNCH_ID.fullmatch(launch.launch_id):
            raise RunFolderError(f"{path}: launch {launch.launch_id!r} has an id of another kind")
    ignored = list(unknown_keys(value, plan))
    _check_whole(path, plan, ignored)
    notes = [f"{PLAN_FILE}: unknown keys are ignored: {', '.join(ignored)}"] if ignored else []
    if with_secrets:
        notes.append(f"{PLAN_FILE} and {EXPERIMENT_FILE} hold values of secrets: see who can read")
    return plan, tuple(notes)


def _check_whole(path: Path, plan: Plan, ignored: Sequence[str]) -> None:
    """A plan that was changed by hand may name cases it has not, or one trial twice.

    Where a later version's key says what was measured, it is a part of the case's key, and without
    it the trials would be taken for those of another case.
    """
    trials = [trial for launch in plan.launches for trial in launch.trials]
    known = {case.key for case in plan.cases}
    stray = next((trial for trial in trials if trial.case_key not in known), None)
    if stray is not None:
        message = f"{path}: trial {stray.trial_id} is of case {stray.case_key}, which is not there"
        if ignored:
            message += f" without what this version does not know: {', '.join(ignored)}"
        raise RunFolderError(message, hint=HINT)
    if len({trial.trial_id for trial in trials}) < len(trials):
        raise RunFolderError(f"{path}: a trial is planned twice", hint="was it changed by hand?")


def unknown_keys(stored: object, read: object, place: str = "") -> Iterator[str]:
    """Which keys of what is stored has the model not that was read from it? With their places."""
    if isinstance(read, BaseModel) and isinstance(stored, dict):
        known = _fields_of(type(read))
        if not stored.keys() <= known:
            yield from (f"{place}{key}" for key in stored if key not in known)
        for key, value in stored.items():
            if isinstance(value, (dict, list)) and key in known:
                yield from unknown_keys(value, getattr(read, key), f"{place}{key}.")
    elif isinstance(read, tuple) and isinstance(stored, list) and len(read) == len(stored):
        for number, (item, value) in enumerate(zip(stored, read, strict=True)):
            if isinstance(item, (dict, list)):
                yield from unknown_keys(item, value, f"{place}{number}.")
    elif isinstance(read, dict) and isinstance(stored, dict):
        for key, value in read.items():
            yield from unknown_keys(stored.get(key), value, f"{place}{key}.")


@cache
def _fields_of(model: type[BaseModel]) -> frozenset[str]:
    return frozenset(model.model_fields)


def read_environments(folder: Path) -> tuple[dict[str, Environment], tuple[str, ...]]:
    """By hash; and a note for each that can't be read (a record's figures stand without it)."""
    environments: dict[str, Environment] = {}
    notes: list[str] = []
    with disk.telling("read", folder / ENVIRONMENTS_FOLDER):
        paths = sorted((folder / ENVIRONMENTS_FOLDER).glob("*.json"))
    for path in paths:
        try:
            environments[path.stem] = Environment.model_validate_json(read_text(path))
        except (ValidationError, RunFolderError) as error:
            name = f"{ENVIRONMENTS_FOLDER}/{path.name}"
            notes.append(f"{name} was ignored: {why_unreadable(error)}")
    return environments, tuple(notes)


def newest_schema(plan: Plan, records: tuple[Record, ...]) -> int:
    """The highest schema version that wrote here."""
    return max((plan.schema_version, *(record.schema_version for record in records)))


def _record_notes(
    folder: Path,
    plan: Plan,
    records: tuple[Record, ...],
    environments: Mapping[str, Environment],
) -> list[str]:
    """Records that name what is not there."""
    planned = {trial.trial_id for launch in plan.launches for trial in launch.trials}
    strange = [record.record_id for record in records if record.record_id not in planned]
    unknown = {record.environment for record in records} - {None, *environments}
    series = [path for record in records for path in record.series.values()]
    with disk.telling("read", folder / "series"):
        lost = [path for path in series if not (folder / path).is_file()]
    notes = []
    if strange:
        notes.append(f"{len(strange)} records are of no planned trial, such as {strange[0]}")
    if unknown:
        notes.append(f"{len(unknown)} environments that records name are missing")
    if lost:
        notes.append(f"{len(lost)} series that records name are missing, such as {lost[0]}")
    return notes + artifact_notes(folder, records)
