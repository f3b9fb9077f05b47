"""How does a table become a Parquet file? Typed columns; the same table gives the same bytes.

pyarrow is the extra `broadgauge[parquet]`.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from broadgauge.analysis.model import AnalysedRun
from broadgauge.report.column_meanings import meaning_of, unit_of_column
from broadgauge.report.export import table_of
from broadgauge.results.table_names import TableName
from broadgauge.results.tables import CellKind
from broadgauge.specs.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa


def to_parquet(analysed: AnalysedRun, name: TableName = "records") -> bytes:
    """The table; its missing values are nulls, its fields say what they mean.

    Raises InputError where pyarrow is missing.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError as error:
        raise InputError(
            f"Parquet needs pyarrow, which can't be imported: {error}",
            hint="pip install 'broadgauge[parquet]', or `--format csv`",
        ) from None
    table = table_of(analysed, name)
    types = _types()
    schema = pa.schema(
        [
            pa.field(
                column.name,
                types[column.kind],
                metadata={
                    "meaning": meaning_of(column.name, name),
                    "unit": unit_of_column(column.name, column.kind),
                },
            )
            for column in table.columns
        ],
        metadata={
            "broadgauge.table": name,
            "broadgauge.experiment": analysed.run.plan.experiment_name,
        },
    )
    cells = [
        pa.array([row[place] for row in table.rows], type=field.type)
        for place, field in enumerate(schema)
    ]
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pa.table(cells, schema=schema), buffer, compression="zstd")
    return buffer.getvalue()


def _types() -> dict[CellKind, pa.DataType]:
    import pyarrow as pa

    return {
        "text": pa.string(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "truth": pa.bool_(),
    }
