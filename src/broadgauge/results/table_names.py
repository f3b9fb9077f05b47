"""As which tables can a run be exported? By name only: the command line's help needs no more."""

from typing import Literal, get_args

TableName = Literal["records", "collectives", "file_accesses"]
"""One row a trial, or the rows of a kind of workload."""
TABLE_NAMES: tuple[TableName, ...] = get_args(TableName)
