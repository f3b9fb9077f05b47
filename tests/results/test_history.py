"""Is one experiment followed over its runs, and is everything else left out and named?"""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.engine.fake_platform import Moment, Script
from tests.engine.making import TRAIN, a_plan, run_in

from broadgauge.cli.main import main
from broadgauge.report.terminal.history import trend
from broadgauge.results.folder.run_folder import RunFolder
from broadgauge.results.history import find_runs, history, started_unix_s
from broadgauge.specs.errors import RunFolderError

DAY_S = 86_400.0
FIRST_S = 1_700_000_000.0


def a_run(parent: Path, day: int, slower: float = 1.0, **changes: Any) -> Path:
    """One of the experiment `tiny` (unless renamed), on this day."""
    plan = a_plan(**{"workloads": [TRAIN], "cluster": {"shapes": ["1x1"]}, **changes})
    folder = RunFolder.create(
        parent, plan=plan, experiment_yaml="name: tiny\n", started_unix_s=FIRST_S + day * DAY_S
    )
    with folder:
        run_in(folder, Script(time_s=lambda moment: _time_s(moment, slower)))
    return folder.path


def _time_s(moment: Moment, slower: float) -> float:
    """Two launches that differ by 2 %."""
    return moment.ideal_s * slower * (1.02 if moment.trial_id.startswith("b1") else 1.0)


def test_a_case_is_followed_from_run_to_run(tmp_path: Path) -> None:
    folders = [a_run(tmp_path, day, slower) for day, slower in enumerate((1.0, 1.1, 1.1))]
    runs, notes = find_runs(tmp_path)
    found = history("tiny", runs)
    assert (notes, found.notes, found.num_runs) == ((), (), 3)
    (case,) = found.cases
    assert (case.label, case.metric) == ("train 1x1 one node", "step_time_s")
    assert [point.run for point in case.points] == [folder.name for folder in folders]
    first, second, third = case.points
    assert first.change is None
    for point, ratio in ((second, 1.1), (third, 1.0)):
        assert point.change is not None
        assert point.change.comparison is not None
        assert point.change.comparison.ratio.value == pytest.approx(ratio)
        assert not point.change.is_paired
        assert any("not interleaved" in note for note in point.change.notes)
    assert trend(case) == "▁██"


def test_other_settings_are_no_change_of_the_same_case(tmp_path: Path) -> None:
    a_run(tmp_path, 0)
    a_run(tmp_path, 1, workloads=[{**TRAIN, "batch_per_rank": 4}])
    (case,) = history("tiny", find_runs(tmp_path)[0]).cases
    assert [point.is_same_case for point in case.points] == [True, False]
    assert case.points[1].change is None


def test_what_is_no_run_is_skipped_with_a_note(tmp_path: Path) -> None:
    a_run(tmp_path, 0)
    a_run(tmp_path, 1, name="other")
    (tmp_path / "foreign").mkdir()
    torn = tmp_path / "torn"
    torn.mkdir()
    (torn / "plan.json").write_text('{"schema_version": 1,')
    (tmp_path / "a-file").touch()
    bad = a_run(tmp_path, 2)
    (bad / "experiment.yaml").unlink()
    empty = a_run(tmp_path, 3)
    (empty / "records.jsonl").write_text("")
    runs, notes = find_runs(tmp_path)
    assert {run.experiment_name for run in runs} == {"tiny", "other"}
    assert [note.split(" was skipped")[0] for note in notes] == [
        str(tmp_path / "foreign"),
        str(torn),
    ]
    found = history("tiny", runs)
    assert found.num_runs == 1
    assert [note.split(" was skipped")[0] for note in found.notes] == [str(bad), str(empty)]


def test_when_a_run_began(tmp_path: Path) -> None:
    folder = tmp_path / "tiny-20231114T221320Z-2"
    folder.mkdir()
    assert started_unix_s(folder, ()) == FIRST_S
    with pytest.raises(RunFolderError):
        started_unix_s(tmp_path / "gone", ())


def test_the_command_lists_and_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    runs = str(tmp_path)
    a_run(tmp_path, 0)
    a_run(tmp_path, 1, 1.2)
    (tmp_path / "foreign").mkdir()
    assert main(["history", "--runs-folder", runs]) == 0
    listed = capsys.readouterr().out
    assert "tiny" in listed
    assert "foreign was skipped" in listed.replace("\n", "")
    assert main(["history", "tiny", "--runs-folder", runs]) == 0
    shown = capsys.readouterr().out
    assert "not interleaved" in shown
    assert "+20.0 %" in shown
    assert "▁█" in shown
    assert main(["history", "tiny", "--runs-folder", runs, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (case,) = document["cases"]
    assert [point["figure"]["launches"] for point in case["points"]] == [2, 2]
    assert case["points"][1]["change"]["ratio"]["value"] == pytest.approx(1.2)
    assert case["points"][1]["change"]["is_interleaved"] is False
    assert "foreign" in document["notes"][0]
    assert main(["history", "tinny", "--runs-folder", runs]) == 2
    assert "did you mean `tiny`?" in capsys.readouterr().err
    assert main(["history", "--runs-folder", str(tmp_path / "none")]) == 5
