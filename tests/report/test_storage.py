"""What do people see of storages: the table, the pictures, the rows, and the advice on them?"""

import csv
import io
import json
from pathlib import Path

import pytest
from rich.console import Console
from tests.report.sample_storage import sample_folder

from broadgauge.advise.storage.choosing import advise
from broadgauge.advise.storage.from_run import measured_storages, table_of_cases
from broadgauge.analysis.model import AnalysedRun
from broadgauge.analysis.store import read_analysed
from broadgauge.report.export import to_csv, to_json
from broadgauge.report.html import render
from broadgauge.report.kinds.registry import in_report
from broadgauge.report.page_charts import pictures
from broadgauge.report.storage_table_rows import HEAD, storage_table_words
from broadgauge.report.terminal import print_closing_table


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample_folder(tmp_path_factory.mktemp("storages"))


@pytest.fixture(scope="module")
def analysed(folder: Path) -> AnalysedRun:
    return read_analysed(folder)


def terminal(analysed: AnalysedRun, width: int = 160) -> str:
    text = io.StringIO()
    print_closing_table(analysed, Console(file=text, width=width))
    return text.getvalue()


def test_every_trial_is_good(analysed: AnalysedRun) -> None:
    assert [summary.num_ok for summary in analysed.run.cases] == [3, 3, 3]


def test_the_table_has_stall_and_durable_side_by_side(analysed: AnalysedRun) -> None:
    words = storage_table_words(analysed.run)
    assert words is not None
    assert [row[0] for row in words.rows] == ["nvme", "shared", "cached"]
    assert all(len(row) == len(HEAD) for row in words.rows)
    cached = dict(zip(HEAD, words.rows[2], strict=True))
    stall, durable = cached["checkpoint\nstall"], cached["checkpoint\ndurable"]
    assert stall.startswith("1.5")
    assert float(durable.split()[0]) > 10 * float(stall.split()[0])
    assert cached["raw\nread"].endswith("cache unknown")
    assert words.rows[0][2].endswith("cold")


def test_what_a_phase_reaches_of_the_device_is_said(analysed: AnalysedRun) -> None:
    words = storage_table_words(analysed.run)
    assert words is not None
    (line,) = [line for line in words.sentences if line.startswith("nvme: checkpointing reaches")]
    assert "12.5 % of the device's plain write rate" in line
    assert "serialisation takes 87.5 % of it and is the limit" in line


def test_best_use_is_the_advice(analysed: AnalysedRun) -> None:
    words, measured = storage_table_words(analysed.run), measured_storages(analysed.run)
    assert words is not None
    assert measured is not None
    chosen = advise(table_of_cases(measured.cases)).chosen
    assert chosen is not None
    for row in words.rows:
        uses = [w.phase.value.replace("_", " ") for w in chosen.waits if w.storage.name == row[0]]
        assert row[-1] == ("\n".join(uses) or "–")


def test_an_hour_loses_what_saves_take_of_it(analysed: AnalysedRun) -> None:
    words = storage_table_words(analysed.run)
    assert words is not None
    stall_s = analysed.run.cases[0].value("checkpoint_stall_s")
    assert stall_s is not None
    assert words.hour_rows[0][2] == f"{100 * stall_s / 600:.2g} %"


@pytest.mark.parametrize("width", [60, 100, 200])
def test_the_terminal_shows_all_of_it(analysed: AnalysedRun, width: int) -> None:
    text = terminal(analysed, width)
    for words in ("Storages", "Share of an hour that is lost", "host-bound", "cache unknown"):
        assert words in text
    assert max(map(len, text.splitlines())) <= width


def test_each_row_is_shown_with_its_proof(analysed: AnalysedRun) -> None:
    text = io.StringIO()
    summary = analysed.run.cases[0]
    in_report(summary.case.workload).print_details(summary, Console(file=text, width=200))
    said = " ".join(text.getvalue().split())
    assert "random-read cold" in said
    assert "read_bytes 1.00 of size" in said
    assert "file and folder fsynced; serialise 1.4" in said


def test_a_picture_a_phase_and_the_raw_rates(analysed: AnalysedRun) -> None:
    titles = [picture.title for picture in pictures(analysed)]
    assert titles[:4] == [
        *("Batch loading, for 100 samples", "Model loading", "Checkpoint saving", "Raw rates")
    ]


def test_the_page_has_it(analysed: AnalysedRun) -> None:
    page = render(analysed)
    for words in ("<h2>Storages</h2>", "checkpoint durable", "until it is durable", "shared"):
        assert words in page


def test_rows_are_exported(analysed: AnalysedRun) -> None:
    rows = list(csv.DictReader(to_csv(analysed, "storage").splitlines()))
    assert len(rows) == 9 * (1 + 2 * 4 + 1)
    save = next(row for row in rows if row["phase"] == "checkpoint_saving")
    assert float(save["part_serialise_s"]) > 1
    assert save["part_read_s"] == ""
    document = json.loads(to_json(analysed))
    assert document["records"][0]["storage"][0]["phase"] == "raw"


def test_a_storage_that_takes_no_save_keeps_its_other_figures(tmp_path: Path) -> None:
    failed = read_analysed(sample_folder(tmp_path, launches=2, failing="nvme"))
    summary = failed.run.cases[0]
    assert summary.num_ok == 2
    assert summary.missing["checkpoint_stall_s"] == "No space left on device"
    assert "nvme: no checkpoint saving: No space left on device" in terminal(failed, 120)
    measured = measured_storages(failed.run)
    assert measured is not None
    chosen = advise(table_of_cases(measured.cases)).chosen
    assert chosen is not None
    assert "nvme" not in {wait.storage.name for wait in chosen.waits}


def test_warm_and_unproven_batches_are_flagged(analysed: AnalysedRun) -> None:
    measured = measured_storages(analysed.run)
    assert measured is not None
    table = table_of_cases(measured.cases)
    assert {each.name: each.batch_cache for each in table.storages} == {
        "nvme": "cold",
        "shared": "cold",
        "cached": "unknown",
    }
    assert table.storage("shared").is_durable
    assert not table.storage("nvme").is_durable
