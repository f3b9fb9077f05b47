"""Today's reader reads a run folder of every schema version to the values it was made with."""

import json
import shutil
from pathlib import Path

import pytest
from tests.engine.making import run_in, trial_ids
from tests.results.golden.make import values

from broadgauge.results.folder.reading import read_run
from broadgauge.results.folder.run_folder import RunFolder
from broadgauge.specs.records.record import SCHEMA_VERSION

GOLDEN = Path(__file__).parents[1] / "golden"
VERSIONS = range(1, SCHEMA_VERSION + 1)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_golden_folder_reads_to_the_same_values(version: int) -> None:
    stored = read_run(GOLDEN / f"schema-{version}")
    expected = json.loads((GOLDEN / f"schema-{version}.values.json").read_text())
    assert json.loads(json.dumps(values(stored))) == expected
    assert stored.notes == ()


@pytest.mark.parametrize("version", VERSIONS)
def test_keys_live_and_defaults_have_not_changed(version: int) -> None:
    """The plan holds every value: one that was a default and is none now changes the key."""
    plan = read_run(GOLDEN / f"schema-{version}").plan
    stored_keys = {trial.case_key for launch in plan.launches for trial in launch.trials}
    assert {case.key for case in plan.cases} == stored_keys


@pytest.mark.parametrize("version", VERSIONS)
def test_a_golden_folder_is_resumed(version: int, tmp_path: Path) -> None:
    path = tmp_path / "copy"
    shutil.copytree(GOLDEN / f"schema-{version}", path)
    lines = (path / "records.jsonl").read_bytes().splitlines(keepends=True)
    (path / "records.jsonl").write_bytes(b"".join(lines[:-2]) + lines[-2][:99])
    with RunFolder.open_for_resume(path) as folder:
        _, platform = run_in(folder)
        assert len(platform.trials) == 2
        assert folder.log_folder.is_dir()
        assert [record.record_id for record in folder.records] == trial_ids(folder.plan)
