"""Is each stored row read as what it is, and by readers of 0.1 as what they know?"""

import json
from typing import Any

import pytest

from broadgauge.specs.base import StoredModel
from broadgauge.specs.records.op_rows import CollectiveRow, MessageRow, NcclTestsRow, OpRow
from broadgauge.specs.records.record import Measurement

OF_ALL: dict[str, Any] = {
    "op": "all_reduce",
    "dtype": "float32",
    "size_bytes": 1024,
    "iterations": 5,
    "time_s": 0.2,
    "algbw_gbyte_per_s": 1.0,
    "busbw_gbyte_per_s": 1.5,
}
EACH = {"time_min_s": 0.1, "time_median_s": 0.15, "time_max_s": 0.4}
ROWS = (
    CollectiveRow(**OF_ALL, **EACH),
    NcclTestsRow(**OF_ALL),
    MessageRow(**OF_ALL, **EACH, from_rank=0, to_rank=3),
)


class RowOfOld(StoredModel):
    """The one row that 0.1.0 reads: all of its keys without a default are needed."""

    op: str
    dtype: str
    size_bytes: int
    iterations: int
    time_s: float
    time_min_s: float | None
    time_median_s: float | None
    time_max_s: float | None
    algbw_gbyte_per_s: float
    busbw_gbyte_per_s: float
    engine: str = "torch"
    from_rank: int | None = None
    to_rank: int | None = None


@pytest.mark.parametrize(
    ("stored", "kind"),
    [
        (EACH, CollectiveRow),
        (EACH | {"engine": "torch", "from_rank": None, "to_rank": None}, CollectiveRow),
        (dict.fromkeys(EACH) | {"engine": "nccl-tests"}, NcclTestsRow),
        (EACH | {"from_rank": 0, "to_rank": 1}, MessageRow),
        (EACH | {"written_by": "a later version"}, CollectiveRow),
        ({"engine": "another", "written_by": "a later version"}, NcclTestsRow),
    ],
)
def test_the_keys_of_a_stored_row_say_what_it_is(stored: dict[str, Any], kind: type[OpRow]) -> None:
    text = json.dumps({"collectives": [OF_ALL | stored]})
    (row,) = Measurement.model_validate_json(text).collectives
    assert type(row) is kind
    assert row.measured_by == stored.get("engine", "torch")


def test_rows_are_read_back_as_they_were() -> None:
    measured = Measurement(collectives=ROWS)
    assert Measurement.model_validate_json(measured.model_dump_json()) == measured


@pytest.mark.parametrize("row", ROWS)
def test_the_first_version_reads_every_row(row: OpRow) -> None:
    (stored,) = Measurement(collectives=(row,)).model_dump(mode="json")["collectives"]
    old = RowOfOld.model_validate(stored)
    assert old.engine == row.measured_by  # type: ignore[attr-defined]  # each kind has it
    assert (old.time_median_s is None) == (type(row) is NcclTestsRow)
    assert (old.from_rank is None) == (type(row) is not MessageRow)
