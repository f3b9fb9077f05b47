"""Proves results/folder/older_secrets.py: a run that stored a secret's value is read without it."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.engine.making import a_plan, an_experiment, make_folder, run_in

from broadgauge.analysis.analyse import analysed
from broadgauge.report.export.run_tables import to_csv, to_json
from broadgauge.report.page.html import render
from broadgauge.report.terminal.printing import print_run
from broadgauge.results.folder.older_secrets import without_values
from broadgauge.results.folder.reading import read_run
from broadgauge.results.folder.run_folder import RunFolder
from broadgauge.results.summary import summarise_stored
from broadgauge.specs.text.reading import read_with_secrets
from broadgauge.specs.text.writing import dump_experiment

PLANTED = "hf_Planted0in0older0files"
THEN, TOKEN = "ANY_NAME", "HF_TOKEN"


def key_of(stored: dict[str, Any]) -> str:
    """As versions before made it, from a case as plan.json has it."""
    form = json.loads(json.dumps(stored))
    for part in (form["workload"], form["network"]):
        for label in ("name", "description", "networks", "environment") if part else ():
            part.pop(label, None)
    text = json.dumps(form, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A run under a name that is no secret's, renamed in all its files."""
    changes: dict[str, Any] = {"environment": {THEN: PLANTED, "A": "1"}, "launches": 1}
    with make_folder(tmp_path, a_plan(**changes)) as folder:
        run_in(folder)
        path = folder.path
    (path / "experiment.yaml").write_text(dump_experiment(an_experiment(**changes)))
    cases = json.loads((path / "plan.json").read_text())["cases"]
    renamed = json.loads(json.dumps(cases).replace(THEN, TOKEN))
    keys = {key_of(case): key_of(new) for case, new in zip(cases, renamed, strict=True)}
    assert keys.keys() == {case.key for case in a_plan(**changes).cases}
    for name in ("plan.json", "experiment.yaml", "records.jsonl"):
        text = (path / name).read_text().replace(THEN, TOKEN)
        for key, new in keys.items():
            text = text.replace(key, new)
        (path / name).write_text(text)
    return path


def test_an_older_run_is_read_and_shown_without_the_value(older: Path) -> None:
    assert PLANTED in (older / "plan.json").read_text()
    stored = read_run(older)
    assert {record.case_key for record in stored.records} <= {c.key for c in stored.plan.cases}
    assert len(stored.notes) == 1
    assert "hold values of secrets" in stored.notes[0]
    run = summarise_stored(older)
    judged = analysed(run)
    assert all(case.num_ok for case in run.cases)
    console = Console(record=True, width=120, quiet=True)
    print_run(judged, console)
    shown = console.export_text() + to_json(judged) + to_csv(judged) + render(judged)
    assert TOKEN in shown
    assert PLANTED not in shown


def test_an_older_run_goes_on_with_the_value_that_its_file_has(older: Path) -> None:
    records = (older / "records.jsonl").read_bytes().splitlines(keepends=True)
    (older / "records.jsonl").write_bytes(b"".join(records[:-1]))
    with RunFolder.open_for_resume(older) as folder:
        experiment, secrets = read_with_secrets(folder.experiment_yaml, "experiment.yaml")
        run_in(folder)
        assert len(folder.records) == len(records)
    assert secrets[TOKEN].reveal() == PLANTED
    assert PLANTED not in dump_experiment(experiment)
    assert PLANTED not in (older / "records.jsonl").read_text()


def test_a_text_that_can_not_be_read_is_not_shown() -> None:
    broken = f"environment: {{}}\nHF_TOKEN: [{PLANTED}\n"
    assert PLANTED not in without_values(broken, "experiment.yaml")
    plain = "name: x\nenvironment: {PAD_TOKEN: '<pad>'}\n"
    assert without_values(plain, "experiment.yaml") == plain
