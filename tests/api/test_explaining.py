"""Proves `broadgauge.explain`: what the command prints, as values."""

import json
from pathlib import Path

import pytest
from tests.traces import jobs

import broadgauge
from broadgauge.cli.main import main


def test_it_is_what_the_command_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = jobs.ddp(late_us=(0, 300)).write(tmp_path)
    found = broadgauge.explain(paths)
    assert main(["explain", str(tmp_path), "--json"]) == 0
    assert found.document == json.loads(capsys.readouterr().out)
    assert sum(time or 0.0 for time in found.parts_s.values()) == pytest.approx(found.step_time_s)
    assert len(found.collectives) == 1
    assert "waiting for a late rank" in str(found)
    assert broadgauge.explain(tmp_path, steps=1).document["steps"] == 1


def test_two_runs_are_compared(tmp_path: Path) -> None:
    for name, late_us in (("a", (0, 0)), ("b", (0, 300))):
        (tmp_path / name).mkdir()
        jobs.ddp(late_us=late_us).write(tmp_path / name)
    found = broadgauge.explain(tmp_path / "a", against=tmp_path / "b")
    assert found.document["step_ratio"] > 1
    assert "B takes" in str(found)


def test_what_is_no_path_is_refused() -> None:
    with pytest.raises(broadgauge.InputError, match="traces"):
        broadgauge.explain(7)  # type: ignore[arg-type]


def test_a_reference_stands_beside_or_says_why_not(tmp_path: Path) -> None:
    golden = Path(__file__).parents[1] / "results/golden/schema-1"
    found = broadgauge.explain(jobs.ddp().write(tmp_path), reference=golden)
    (row,) = found.document["collectives"]  # type: ignore[misc]
    assert {"probe_busbw_gbyte_per_s", "probe_share_ratio"} <= set(row)
    assert found.document["probe"] is not None or found.document["notes"]
