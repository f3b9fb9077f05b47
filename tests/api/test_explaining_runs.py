"""Proves `broadgauge.explain` of a run: each traced case, as the command prints it."""

import json
import shutil
from pathlib import Path

import pytest
from tests.traces import jobs

import broadgauge
from broadgauge.cli.main import main

GOLDEN = Path(__file__).parents[1] / "results/golden/schema-1"


def traced_run(folder: Path, num_cases: int) -> Path:
    """A stored run, whose first trainings left traces in one trial."""
    run = Path(shutil.copytree(GOLDEN, folder / "runs/sample"))
    records = [json.loads(line) for line in (run / "records.jsonl").read_text().splitlines()]
    trained = [r for r in records if r["status"] == "ok" and "step_time_s" in r["metrics"]]
    first = {record["case_key"]: record["record_id"] for record in reversed(trained)}
    kept = {}
    for number, trial in enumerate(list(first.values())[:num_cases]):
        into = run / "artifacts" / trial
        into.mkdir(parents=True)
        paths = jobs.ddp(late_us=(0, 300 * number)).write(into)
        kept[trial] = [
            {
                "name": path.name,
                "kind": "trace",
                "path": str(path.relative_to(run)),
                "size_bytes": path.stat().st_size,
                "sha256": "0" * 64,
            }
            for path in paths
        ]
    for record in records:
        record["artifacts"] = kept.get(record["record_id"], record.get("artifacts", []))
    text = "".join(json.dumps(record) + "\n" for record in records)
    (run / "records.jsonl").write_text(text)
    return run


def test_a_run_of_one_traced_case_is_asked_as_its_traces_are(tmp_path: Path) -> None:
    run = traced_run(tmp_path, 1)
    found = broadgauge.explain(run)
    (label,) = found.cases
    assert label in str(found)
    traces = next((run / "artifacts").iterdir())
    plain = broadgauge.explain(traces, ranks_per_node=1)
    assert found.parts_s == plain.parts_s
    assert found.step_time_s == plain.step_time_s
    assert found.cases[label].parts_s == plain.parts_s
    assert plain.cases == {}


def test_of_several_cases_one_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = traced_run(tmp_path, 2)
    capsys.readouterr()
    found = broadgauge.explain("sample", runs_folder=tmp_path / "runs")
    assert main(["explain", str(run), "--json"]) == 0
    assert found.document == json.loads(capsys.readouterr().out)
    first, second = found.cases.values()
    assert first.parts_s["straggler_wait"] != second.parts_s["straggler_wait"]
    with pytest.raises(broadgauge.InputError, match="2 traced cases"):
        found.parts_s  # noqa: B018
    with pytest.raises(broadgauge.InputError, match="ranks_per_node"):
        broadgauge.explain(run, ranks_per_node=2)


def test_two_runs_are_compared_case_by_case(tmp_path: Path) -> None:
    a, b = (traced_run(tmp_path / name, 1) for name in "ab")
    found = broadgauge.explain(a, against=b)
    assert found.document["cases"][0]["step_ratio"] == 1  # type: ignore[index]


def test_a_run_without_traces_and_what_is_nothing_are_refused(tmp_path: Path) -> None:
    run = Path(shutil.copytree(GOLDEN, tmp_path / "run"))
    with pytest.raises(broadgauge.InputError, match="without traces"):
        broadgauge.explain(run)
    with pytest.raises(broadgauge.BroadgaugeError):
        broadgauge.explain(tmp_path / "nothing")
