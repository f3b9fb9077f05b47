"""A run folder holds what was put in, whoever reads it and while it is written."""

import json
import os
import stat
from pathlib import Path

import numpy as np
import pytest
from tests.engine.fake_platform import an_environment
from tests.engine.making import YAML, a_plan, make_folder, run_in, trial_ids

from broadgauge.analysis.store import read_analysed
from broadgauge.report.page.html import write_report
from broadgauge.results.folder.reading import read_run
from broadgauge.results.folder.run_folder import RunFolder
from broadgauge.results.folder.series import read_series
from broadgauge.specs.errors import RunFolderError
from broadgauge.specs.plan import Plan


@pytest.fixture
def plan() -> Plan:
    return a_plan(launches=1)


def finished(parent: Path, plan: Plan) -> Path:
    """A folder with all records of this plan."""
    with make_folder(parent, plan) as folder:
        run_in(folder)
        return folder.path


def test_what_is_read_is_what_was_written(tmp_path: Path, plan: Plan) -> None:
    with make_folder(tmp_path / "deep" / "runs", plan) as folder:
        run_in(folder)
        stored = read_run(folder.path)
        assert stored.records == tuple(folder.records)
        assert stored.environments == folder.environments
    assert (stored.plan, stored.experiment_yaml, stored.notes) == (plan, YAML, ())
    assert sorted(path.name for path in folder.path.iterdir()) == [
        "environments",
        "experiment.yaml",
        "lock",
        "logs",
        "plan.json",
        "records.jsonl",
        "series",
    ]


def test_folders_are_named_by_time_and_never_shared(tmp_path: Path, plan: Plan) -> None:
    names = [make_folder(tmp_path, plan).path.name for _ in range(3)]
    assert names == [f"tiny-20270115T080000Z{suffix}" for suffix in ("", "-2", "-3")]


def test_location_is_what_the_user_would_type(
    tmp_path: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = make_folder(Path("runs"), plan)
    assert folder.location == f"runs/{folder.path.name}"
    monkeypatch.chdir("/")
    assert folder.location == str(folder.path).removeprefix("/")


def test_series_keep_every_value_and_missing_ones_are_nan(tmp_path: Path, plan: Plan) -> None:
    folder = make_folder(tmp_path, plan)
    record = folder_record(tmp_path / "other", plan)
    stored = folder.append(
        record, {"loss": (1.5, None, 2.5), "iteration_time_s": ((0.0, 0.1), (1.0, 0.2))}
    )
    losses = read_series(folder.path, stored, "loss")
    assert losses is not None
    np.testing.assert_array_equal(losses, [1.5, np.nan, 2.5])
    rows = read_series(folder.path, stored, "iteration_time_s")
    assert rows is not None
    assert rows.shape == (2, 2)
    assert read_series(folder.path, stored, "nothing") is None


def folder_record(parent: Path, plan: Plan):  # type: ignore[no-untyped-def]
    """Some record of this plan, to be stored elsewhere."""
    return read_run(finished(parent, plan)).records[0]


def test_a_series_outside_of_the_folder_is_not_read(tmp_path: Path, plan: Plan) -> None:
    record = folder_record(tmp_path, plan).model_copy(update={"series": {"loss": "../../x.npy"}})
    with pytest.raises(RunFolderError, match="outside"):
        read_series(tmp_path / "a", record, "loss")


def test_a_trial_is_stored_once(tmp_path: Path, plan: Plan) -> None:
    folder = make_folder(tmp_path, plan)
    record = folder_record(tmp_path / "other", plan)
    folder.append(record, {})
    with pytest.raises(RunFolderError, match=r"trial b0\.l0\.t0 is in .* already"):
        folder.append(record, {})
    assert len(read_run(folder.path).records) == 1


def test_environments_are_stored_once_by_their_content(tmp_path: Path, plan: Plan) -> None:
    folder = make_folder(tmp_path, plan)
    names = [folder.add_environment(an_environment(kernel=k)) for k in ("6.1", "6.2", "6.1")]
    assert names[0] == names[2] != names[1]
    assert len(list((folder.path / "environments").iterdir())) == 2


def test_a_second_writer_is_refused_with_the_pid_of_the_first(
    tmp_path: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broadgauge.results.folder.lock._PATIENCE_S", 0.0)
    folder = make_folder(tmp_path, plan)
    with pytest.raises(RunFolderError, match=r"written by another process \(pid \d+ on "):
        RunFolder.open_for_resume(folder.path)
    folder.close()
    folder.close()
    RunFolder.open_for_resume(folder.path).close()


def test_a_plan_of_a_later_version_is_read_and_unknown_keys_are_named(
    tmp_path: Path, plan: Plan
) -> None:
    path = finished(tmp_path, plan)
    change_plan(path, schema_version=2, hypotheses=[])
    value = json.loads((path / "plan.json").read_text())
    value["cases"][0]["workload"]["cuda_graph_pools"] = 3
    value["cases"][1]["rails"] = 2
    (path / "plan.json").write_text(json.dumps(value))
    stored = read_run(path)
    assert stored.plan.cases == plan.cases
    assert len(stored.records) == len(trial_ids(plan))
    assert stored.notes == (
        "plan.json: unknown keys are ignored: cases.0.workload.cuda_graph_pools, cases.1.rails",
        "written by a newer Broadgauge (schema 2): what it added is ignored",
    )
    with pytest.raises(RunFolderError, match=r"newer Broadgauge \(schema 2"):
        RunFolder.open_for_resume(path)


def change_plan(path: Path, **changes: object) -> None:
    value = json.loads((path / "plan.json").read_text())
    (path / "plan.json").write_text(json.dumps({**value, **changes}))


def test_records_of_a_later_version_are_read_and_not_resumed(tmp_path: Path, plan: Plan) -> None:
    path = finished(tmp_path, plan)
    change_lines(path, lambda value: {**value, "schema_version": 3, "rails": [1, 2]})
    assert "schema 3" in read_run(path).notes[0]
    with pytest.raises(RunFolderError, match="schema 3"):
        RunFolder.open_for_resume(path)
    change_lines(path, lambda value: {**value, "status": "postponed"})
    with pytest.raises(RunFolderError, match=r"records\.jsonl:1: written by a newer"):
        read_run(path)


def change_lines(path: Path, change) -> None:  # type: ignore[no-untyped-def]
    file = path / "records.jsonl"
    values = [change(json.loads(line)) for line in file.read_text().splitlines()]
    file.write_text("".join(json.dumps(value) + "\n" for value in values))


def test_what_records_name_and_is_not_there_is_said(tmp_path: Path, plan: Plan) -> None:
    path = finished(tmp_path, plan)
    next((path / "series").iterdir()).unlink()
    (environment,) = (path / "environments").iterdir()
    environment.write_text("{}")
    change_lines(path, lambda value: {**value, "record_id": "b9" + value["record_id"][2:]})
    notes = " ".join(read_run(path).notes)
    assert "was ignored" in notes
    assert "1 environments that records name are missing" in notes
    assert "1 series that records name are missing" in notes
    assert "of no planned trial" in notes


def test_only_its_owner_can_read_a_run_whatever_the_umask(tmp_path: Path, plan: Plan) -> None:
    umask = os.umask(0)
    try:
        path = finished(tmp_path, plan)
        write_report(read_analysed(path))
    finally:
        os.umask(umask)
    modes = {found.name: stat.S_IMODE(found.stat().st_mode) for found in (path, *path.rglob("*"))}
    assert {"report.html", "analysis.json", "lock", "plan.json", "records.jsonl"} <= modes.keys()
    assert not {name: oct(mode) for name, mode in modes.items() if mode & 0o077}


def test_a_folder_that_others_may_read_is_resumed_and_stays_open(
    tmp_path: Path, plan: Plan
) -> None:
    path = finished(tmp_path, plan)
    for found in (path, *path.rglob("*")):
        found.chmod(0o755 if found.is_dir() else 0o644)
    with RunFolder.open_for_resume(path) as folder:
        assert folder.notes == ()
    assert stat.S_IMODE(path.stat().st_mode) == 0o755
