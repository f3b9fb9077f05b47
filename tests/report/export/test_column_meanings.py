"""Is every column of every export explained, the same in the command, in Parquet and the docs?"""

import csv
import io
import json
import shutil
from pathlib import Path

import pyarrow.parquet
import pytest

from broadgauge.analysis.store import read_analysed
from broadgauge.cli.main import main
from broadgauge.report.export.column_meanings import (
    OF_FILE_ACCESSES,
    OF_OPERATIONS,
    OF_TRIALS,
    described,
    meaning_of,
    to_markdown,
)
from broadgauge.report.export.parquet import to_parquet
from broadgauge.report.export.run_tables import columns_of
from broadgauge.results.table_names import TABLE_NAMES
from broadgauge.specs.workloads.metrics import REGISTRY

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests/results/golden/schema-1"
OWN = meaning_of("a_metric_of_mine_s", "records")


def test_each_column_has_a_meaning_of_its_own() -> None:
    known = [each for each in described() if each.meaning != OWN]
    assert known == list(described())
    for table in TABLE_NAMES:
        mine = [each for each in known if each.table == table]
        assert [each.name for each in mine] == [column.name for column in columns_of(table)]
        assert len({each.meaning for each in mine}) == len(mine)


def test_nothing_is_explained_that_is_no_column() -> None:
    names = {each.name for each in described()}
    assert {*OF_TRIALS, *OF_OPERATIONS, *OF_FILE_ACCESSES} <= names
    assert not set(OF_TRIALS) & set(REGISTRY)


def test_numbers_have_units_where_their_names_end_with_one() -> None:
    units = {each.name: each.unit for each in described()}
    assert units["step_time_s"] == "s"
    assert units["started_unix_s"] == "s since 1970"
    assert (units["line_rate_gbps"], units["loss"], units["workload"]) == ("Gbit/s", "", "")


def test_a_parquet_file_says_what_its_fields_mean(tmp_path: Path) -> None:
    run = read_analysed(Path(shutil.copytree(GOLDEN, tmp_path / "run")))  # which is written to
    schema = pyarrow.parquet.read_schema(io.BytesIO(to_parquet(run)))
    for field in schema:
        assert field.metadata[b"meaning"].decode() == meaning_of(field.name, "records")
    assert schema.field("step_time_s").metadata[b"unit"] == b"s"


def test_the_page_is_what_the_command_writes() -> None:
    """`broadgauge export --describe --format markdown > docs/columns.md`."""
    assert (ROOT / "docs/columns.md").read_text() == to_markdown()


def test_the_dictionary_needs_no_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "--describe", "--format", "json"]) == 0
    columns = json.loads(capsys.readouterr().out)["columns"]
    assert main(["export", "--describe", "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert rows == columns
    assert main(["export", "--describe"]) == 0
    shown = capsys.readouterr().out
    assert "mean time of a training step" in shown
    assert "from_rank" not in shown
    assert main(["export", "--describe", "--table", "collectives"]) == 0
    assert "from_rank" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "which run?"),
        (["last"], "no --format was given"),
        (["last", "--format", "markdown"], "a run is no markdown"),
        (["--describe", "--format", "parquet"], "no Parquet file"),
    ],
)
def test_what_is_missing_is_said(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", *arguments]) == 2
    assert words in capsys.readouterr().err
