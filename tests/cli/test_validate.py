"""`broadgauge validate` from the command line: any table, and no traceback."""

import json
from pathlib import Path

import pytest
from tests.predict.making_articles import articles_found
from tests.predict.making_tables import csv_of

from broadgauge.cli.main import main
from broadgauge.predict.articles import scores as scores_module

KEYS = (
    *("n", "mape", "median_ape", "p90_ape", "worst_ape", "bias", "interval_coverage"),
    *("pair_order", "scaling_efficiency_error"),
)
ROWS = [
    {"id": "a", "source": "one"},
    {"id": "b", "source": "one", "micro_batch": "1", "global_batch": "16", "step_time_s": "0.4"},
    {"id": "c", "source": "two", "flags": "CPU offload", "gpu": "a100-sxm-80gb"},
    {"id": "broken", "gpu": "h100-sxn"},
    {"id": "d", "source": "two", "framework": "brand new", "dtype": "fp16"},
]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.csv"
    path.write_text(csv_of(*ROWS), encoding="utf-8")
    return path


def test_one_json_object(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(table), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert set(document["by_source"]) == {"one", "two"}
    for scores in (
        document["overall"],
        document["mean_over_sources"],
        *document["by_source"].values(),
        document["without_flagged"]["overall"],
    ):
        assert tuple(scores) == KEYS
    assert document["overall"]["n"] == 4
    assert document["without_flagged"]["overall"]["n"] == 3
    assert 0 < document["overall"]["mape"] < 10
    [unread] = document["unread"]
    assert (unread["id"], unread["line"]) == ("broken", 5)
    assert "did you mean `h100-sxm`?" in unread["reason"]


@pytest.mark.parametrize("width", ["50", "80"])
def test_words_for_a_terminal(
    table: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: str
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    assert main(["validate", str(table), "--by", "source"]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= int(width)
    assert "4 rows predicted" in text
    assert "1 row not scored" in text
    assert "6N + 12LHS at 45 % MFU" in text


def test_calibration_takes_rows_away(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["validate", str(table), "--calibrate", "system-network", "--points", "1"]
    assert main([*arguments, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["calibration_rows"] in (["a"], ["b"])
    assert document["overall"]["n"] == 3


def test_a_peer_from_a_file(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    times = tmp_path / "times.csv"
    times.write_text("id,step_time_s\na,1.25\n", encoding="utf-8")
    assert main(["validate", str(table), "--peer", f"them={times}", "--json"]) == 0
    peer = json.loads(capsys.readouterr().out)["peers"]["them"]
    assert (peer["peer"]["overall"]["n"], peer["peer"]["overall"]["mape"]) == (1, 0.0)


def test_a_training_that_cannot_be_is_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "table.csv"
    odd = {"id": "odd", "tensor_parallel": "16", "data_parallel": "1", "hidden": "2047"}
    path.write_text(csv_of({"id": "fine"}, odd, {"id": "too"}), encoding="utf-8")
    assert main(["validate", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["overall"]["n"] == 2
    [unread] = document["unread"]
    assert (unread["id"], unread["line"]) == ("odd", 3)
    assert "hidden size 2047, which do not divide by tensor parallel 16" in unread["reason"]


@pytest.mark.parametrize("width", ["50", "80", "100"])
def test_a_small_table_is_printed_row_by_row(
    table: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: str
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    assert main(["validate", str(table), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert main(["validate", str(table)]) == 0
    _, _, rows = capsys.readouterr().out.partition("Row by row")
    lines = {words[0]: words for words in map(str.split, rows.splitlines()[3:7])}
    assert list(lines) == ["a", "b", "c", "d"]
    for row in document["rows"]:
        error = row["predicted_s"] / row["measured_s"] - 1
        is_inside = row["low_s"] <= row["measured_s"] <= row["high_s"]
        assert lines[row["id"]][-2:] == [f"{error * 100:+.1f}", "yes" if is_inside else "no"]


def test_rows_of_long_names_fit_a_terminal_in_one_line_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    path = tmp_path / "table.csv"
    names = [f"{'a' * 60}-{end}" for end in ("first", "second")]
    path.write_text(csv_of(*({"id": name} for name in names)), encoding="utf-8")
    assert main(["validate", str(path)]) == 0
    _, _, rows = capsys.readouterr().out.partition("Row by row")
    first, second = rows.splitlines()[3:5]
    assert first.split()[0].endswith("-first")
    assert second.split()[0].endswith("-second")
    assert len(first.split()) == len(second.split()) == 7


def test_a_large_table_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "table.csv"
    path.write_text(csv_of(*({"id": f"row-{i}"} for i in range(31))), encoding="utf-8")
    assert main(["validate", str(path)]) == 0
    text = capsys.readouterr().out
    assert "31 rows predicted" in text
    assert "Row by row" not in text


def test_where_nothing_can_be_scored_the_exit_code_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "table.csv"
    path.write_text(csv_of({"gpu": "none such"}), encoding="utf-8")
    assert main(["validate", str(path), "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["overall"]["mape"] is None
    assert main(["validate", str(path)]) == 2
    assert "0 rows predicted" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing.csv"], "`missing.csv` can't be read: No such file or directory"),
        (["."], "`.` can't be read"),
        (["TABLE", "--points", "2"], "--points says how many rows calibrate, and none do"),
        (["--calibrate", "system"], "the articles' tables have calibration rows of their own"),
        (["--markdown"], "--markdown is of a table"),
        (["TABLE", "--peer", "x"], "--peer takes NAME=FILE.csv, not `x`"),
    ],
)
def test_what_cannot_be_done_is_said(
    table: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert main(["validate", *(str(table) if a == "TABLE" else a for a in arguments)]) == 2
    assert words in capsys.readouterr().err


def test_the_articles(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(scores_module, "article_scores", articles_found)
    assert main(["validate"]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert "tokens a step are not published" in text
    assert main(["validate", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert tuple(document["overall"]) == KEYS
    assert {"l40s-cluster", "nebius-h100"} <= set(document["by_source"])
    assert all(each["reason"] for each in document["unread"])
