"""How do the values of single steps and iterations come to Python?"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from broadgauge.api.table import Table
from broadgauge.report.export.run_tables import LABEL_COLUMNS
from broadgauge.results.folder.series import read_series
from broadgauge.results.model import RunSummary
from broadgauge.results.tables import Cell, CellKind, ExportColumn, ExportTable
from broadgauge.specs.base import did_you_mean
from broadgauge.specs.errors import InputError
from broadgauge.specs.records.record import Record


def series_table(run: RunSummary, name: str) -> Table:
    """One row a value, or a row of values. Raises InputError and RunFolderError."""
    arrays = [
        (record, array) for record in run.records if (array := _rows(run, record, name)) is not None
    ]
    if not arrays:
        names = dict.fromkeys(known for record in run.records for known in record.series)
        raise InputError(
            f"no trial of {run.folder} has a series `{name}`", hint=did_you_mean(name, names)
        )
    width = max(array.shape[1] for _, array in arrays)
    values = [name] if width == 1 else [f"{name}_{number}" for number in range(width)]
    kinds: dict[str, CellKind] = LABEL_COLUMNS | {"index": "integer"}
    kinds |= dict.fromkeys(values, "number")
    columns = tuple(ExportColumn(name=column, kind=kind) for column, kind in kinds.items())
    rows = tuple(row for record, array in arrays for row in _cells(record, array, width))
    return Table(f"series {name}", ExportTable(columns=columns, rows=rows))


def series_array(run: RunSummary, record_id: str, name: str) -> NDArray[np.float64]:
    """Of one trial. Raises InputError and RunFolderError."""
    records = {record.record_id: record for record in run.records}
    record = records.get(record_id)
    if record is None:
        raise InputError(
            f"{run.folder} has no record `{record_id}`", hint=did_you_mean(record_id, records)
        )
    array = read_series(run.folder, record, name)
    if array is None:
        hint = did_you_mean(name, record.series)
        raise InputError(f"{record_id} has no series `{name}`", hint=hint)
    return array


def _rows(run: RunSummary, record: Record, name: str) -> NDArray[np.float64] | None:
    """float64[n, k]; None where the trial has no such series."""
    array = read_series(run.folder, record, name)
    return None if array is None else array.reshape(len(array), -1)


def _cells(record: Record, array: NDArray[np.float64], width: int) -> Iterator[tuple[Cell, ...]]:
    labels = tuple(getattr(record, column) for column in LABEL_COLUMNS)
    missing = (None,) * (width - array.shape[1])
    for index, row in enumerate(array.tolist()):
        values = (value if value == value else None for value in row)  # noqa: PLR0124
        yield (*labels, index, *values, *missing)
