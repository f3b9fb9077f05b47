"""Proves api/table.py and the tables of a run: rows, data frames and Arrow hold the same."""

import csv
import io
import math
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from broadgauge.api.stored_run import Run
from broadgauge.api.table import table_of_rows
from broadgauge.report.export.run_tables import to_csv
from broadgauge.specs.errors import InputError


def test_records_are_what_is_exported(golden: Run) -> None:
    lines = list(csv.DictReader(io.StringIO(to_csv(golden._analysed))))
    assert len(golden.records) == len(lines) > 0
    for row, line in zip(golden.records, lines, strict=True):
        assert {name: "" if cell is None else str(cell) for name, cell in row.items()} == line


def test_a_data_frame_has_the_same_cells(golden: Run) -> None:
    table = golden.records
    frame = table.to_pandas()
    assert tuple(frame.columns) == table.columns
    assert len(frame) == len(table)
    kinds = {column.name: column.kind for column in table.cells.columns}
    wanted = {"text": "string", "integer": "Int64", "number": "float64", "truth": "boolean"}
    assert {name: str(kind) for name, kind in frame.dtypes.items()} == {
        name: wanted[kind] for name, kind in kinds.items()
    }
    for name in table.columns:
        for cell, shown in zip(table.column(name), frame[name], strict=True):
            assert (cell is None) == bool(pd.isna(shown))
            assert cell is None or cell == shown


def test_arrow_has_the_same_cells(golden: Run) -> None:
    for table in (golden.records, golden.collectives, golden.estimates, golden.series("loss")):
        assert table.to_arrow().to_pylist() == list(table)


def test_arrows_fields_say_what_they_mean(golden: Run) -> None:
    field = golden.records.to_arrow().schema.field("step_time_s")
    assert field.metadata[b"unit"] == b"s"
    assert b"step" in field.metadata[b"meaning"]


def test_a_table_may_be_empty() -> None:
    assert table_of_rows("none", []).to_pandas().empty
    assert table_of_rows("none", []).to_arrow().num_rows == 0


@pytest.mark.parametrize(("module", "extra"), [("pandas", "pandas"), ("pyarrow", "parquet")])
def test_what_is_not_installed_names_its_extra(
    golden: Run, monkeypatch: pytest.MonkeyPatch, module: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError) as raised:
        golden.records.to_pandas() if module == "pandas" else golden.records.to_arrow()
    assert f"broadgauge[{extra}]" in str(raised.value)


def test_a_column_that_is_not_there_says_what_was_meant(golden: Run) -> None:
    with pytest.raises(InputError, match="did you mean `step_time_s`"):
        golden.records.column("step_times")


def test_kinds_are_those_of_the_values() -> None:
    rows = [
        {"a": 1, "b": 1, "c": True, "d": None, "e": "x"},
        {"a": 2, "b": 1.5, "c": None, "d": None, "e": None},
    ]
    table = table_of_rows("t", rows)
    assert [column.kind for column in table.cells.columns] == [
        "integer",
        "number",
        "truth",
        "number",
        "text",
    ]
    schema = table.to_arrow().schema
    assert [field.type for field in schema] == [
        pa.int64(),
        pa.float64(),
        pa.bool_(),
        pa.float64(),
        pa.string(),
    ]


def test_a_series_is_the_files_values(golden: Run) -> None:
    table = golden.series("step_time_s")
    for record_id in dict.fromkeys(table.column("record_id")):
        rows = [row for row in table if row["record_id"] == record_id]
        array = golden.array(str(record_id), "step_time_s")
        assert [row["index"] for row in rows] == list(range(len(array)))
        assert np.array_equal([row["step_time_s"] for row in rows], array)


def test_rows_of_values_have_a_column_each(golden: Run) -> None:
    record = golden._analysed.run.records[0]
    name = next(iter(record.series))
    values = np.array([[1.0, 2.0], [3.0, math.nan]])
    np.save(golden.folder / record.series[name], values)
    rows = [row for row in golden.series(name) if row["record_id"] == record.record_id]
    assert [(row[f"{name}_0"], row[f"{name}_1"]) for row in rows] == [(1.0, 2.0), (3.0, None)]


def test_a_series_that_is_not_there_says_what_was_meant(golden: Run) -> None:
    assert "step_time_s" in golden.series_names
    with pytest.raises(InputError, match="did you mean `step_time_s`"):
        golden.series("step_time")
    with pytest.raises(InputError, match="has no record `b9"):
        golden.array("b9.l9.t9")
