"""How does a table become Arrow, or a Parquet file? The same table gives the same bytes.

pyarrow is the extra `broadgauge[parquet]`.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from broadgauge.analysis.model import AnalysedRun
from broadgauge.report.export.column_meanings import meaning_of, unit_of_column
from broadgauge.report.export.run_tables import table_of
from broadgauge.results.table_names import TABLE_NAMES, TableName
from broadgauge.results.tables import CellKind, ExportColumn, ExportTable
from broadgauge.specs.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa


def to_parquet(analysed: AnalysedRun, name: TableName = "records") -> bytes:
    """The table; its missing values are nulls, its fields say what they mean.

    Raises InputError where pyarrow is missing.
    """
    table = arrow_table(table_of(analysed, name), name, analysed.run.plan.experiment_name)
    import pyarrow.parquet

    buffer = io.BytesIO()
    pyarrow.parquet.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def arrow_table(table: ExportTable, name: str, experiment: str | None = None) -> pa.ExportTable:
    """Its columns with their types, and whose they are. Raises InputError where pyarrow is
    missing."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise InputError(
            f"Arrow and Parquet need pyarrow, which can't be imported: {error}",
            hint="pip install 'broadgauge[parquet]', or `--format csv`",
        ) from None
    types = _types()
    metadata = {"broadgauge.table": name}
    if experiment is not None:
        metadata["broadgauge.experiment"] = experiment
    schema = pa.schema(
        [
            pa.field(column.name, types[column.kind], metadata=_facts(column, name))
            for column in table.columns
        ],
        metadata=metadata,
    )
    cells = [
        pa.array([row[place] for row in table.rows], type=field.type)
        for place, field in enumerate(schema)
    ]
    return pa.table(cells, schema=schema)


def _facts(column: ExportColumn, table: str) -> dict[str, str]:
    """Its unit; and in the tables of an export what it means."""
    facts = {"unit": unit_of_column(column.name, column.kind)}
    exported = next((each for each in TABLE_NAMES if each == table), None)
    if exported is not None:
        facts["meaning"] = meaning_of(column.name, exported)
    return facts


def _types() -> dict[CellKind, pa.DataType]:
    import pyarrow as pa

    return {
        "text": pa.string(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "truth": pa.bool_(),
    }
