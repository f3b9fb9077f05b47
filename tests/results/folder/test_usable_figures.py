"""Is a run shown whatever its figures are, and is said which were left out?"""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from broadgauge.cli.main import main
from broadgauge.report.charts.drawing import Drawing
from broadgauge.results.folder.reading import read_run
from broadgauge.results.folder.record_line import record_line
from broadgauge.results.folder.records_file import RECORDS_FILE
from broadgauge.results.folder.usable_figures import LARGEST, without_unusable
from broadgauge.specs.records.record import Record

GOLDEN = Path(__file__).parents[1] / "golden/schema-1"
METRIC = "step_time_s"


def golden_with(folder: Path, value: float) -> Path:
    """The golden run, with this step time and this ceiling in every record."""
    run = shutil.copytree(GOLDEN, folder / "run")
    (run / "analysis.json").unlink(missing_ok=True)
    records = [json.loads(line) for line in (GOLDEN / RECORDS_FILE).read_text().splitlines()]
    for record in records:
        if record["metrics"].get(METRIC) is not None:
            record["metrics"][METRIC] = value
        if record.get("link") is not None:
            record["link"]["ceiling_gbps"] = value
    text = "".join(json.dumps(record) + "\n" for record in records)
    (run / RECORDS_FILE).write_text(text)
    return run


@pytest.mark.parametrize("value", [1e308, -1e308, 1e101, 5e-324])
@pytest.mark.parametrize("command", ["show", "export --format csv", "compare", f"compare {GOLDEN}"])
def test_a_run_is_shown_whatever_its_figures_are(
    command: str, value: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = golden_with(tmp_path, value)
    verb, *options = command.split()
    assert main([verb, str(run), *options]) == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize("value", [1e308, 1e99, 1e-99])
def test_a_report_is_made_whatever_its_figures_are(
    value: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its series, too. The pictures are not drawn, which takes long; their axes are made."""
    monkeypatch.setattr("broadgauge.report.page.html.runtime", lambda: None)
    empty = Drawing(wide_svg="", narrow_svg="", vega_json="{}")
    monkeypatch.setattr("broadgauge.report.page.charts.draw", lambda *_: empty)
    run = golden_with(tmp_path, value)
    for path in (run / "series").glob("*.npy"):
        values = np.load(path)
        values.flat[::2] = value
        np.save(path, values)
    assert main(["report", str(run)]) == 0


@pytest.mark.parametrize("value", [1e308, float("nan"), float("-inf")])
def test_what_is_left_out_is_said(value: float) -> None:
    (record, *_) = [r for r in read_run(GOLDEN).records if r.link and METRIC in r.metrics]
    link = record.link.model_copy(update={"ceiling_gbps": value}) if record.link else None
    nodes = (record.nodes[0].model_copy(update={"elapsed_s": value}), *record.nodes[1:])
    changed = {"metrics": {**record.metrics, METRIC: value}, "link": link, "nodes": nodes}
    bad = record.model_copy(update=changed)
    line, stored = record_line(bad)
    assert stored == without_unusable(bad)
    assert stored == Record.model_validate_json(line)
    assert stored.metrics[METRIC] is None
    assert stored.missing[METRIC] in (
        "a number above 1e+100 can't be used: 1e+308",
        f"not a finite number: {value}",
    )
    assert stored.link is None
    assert stored.nodes == record.nodes[1:]
    assert stored.missing["nodes"] == "1 of 2 held no number that can be used"


def test_what_can_be_used_stays() -> None:
    for record in read_run(GOLDEN).records:
        assert without_unusable(record) is record
    changed = {"metrics": {METRIC: LARGEST, "loss": -LARGEST}}
    record = read_run(GOLDEN).records[0].model_copy(update=changed)
    assert without_unusable(record) is record
