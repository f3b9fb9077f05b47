"""A line is at most 64 KiB of JSON without NaN, whatever a trial says, and no record is lost."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.costly import costly

from broadgauge.engine.kinds.collectives import MOST_COLLECTIVE_ROWS
from broadgauge.results.folder.record_line import record_line
from broadgauge.specs.records.nccl import NcclUse, NcclWay
from broadgauge.specs.records.op_rows import CollectiveRow
from broadgauge.specs.records.record import (
    MAX_RECORD_BYTES,
    ErrorKind,
    Finding,
    NodeUse,
    Record,
    Severity,
    Status,
    TrialError,
)

NAN = float("nan")


def a_row(number: int = 0, **changes: Any) -> CollectiveRow:
    third = 1 / 3 + number
    row = CollectiveRow(
        op="reduce_scatter",
        dtype="bfloat16",
        size_bytes=2**30,
        iterations=100,
        time_s=third,
        time_min_s=third / 7,
        time_median_s=third / 11,
        time_max_s=third / 13,
        algbw_gbyte_per_s=third / 17,
        busbw_gbyte_per_s=third / 19,
        wire_bytes=1e9 / 3,
        amplification_ratio=2 / 3,
        link_rate_gbps=0.2 / 3,
        is_correct=True,
    )
    return row.model_copy(update=changes)


def a_node(number: int = 0, **changes: Any) -> NodeUse:
    node = NodeUse(
        node=number,
        elapsed_s=1 / 3,
        cores_count=1,
        cpu_user_s=2 / 3,
        cpu_system_s=1 / 7,
        cpu_softirq_s=1 / 11,
        cpu_busy_ratio=1 / 13,
    )
    return node.model_copy(update=changes)


def a_record(**changes: Any) -> Record:
    record = Record(
        record_id="b0.l0.t0",
        case_key="0123456789abcdef",
        workload="train",
        network="slow",
        shape="2x1",
        launch_id="b0.l0",
        block=0,
        trial=0,
        position=0,
        started_unix_s=1.0,
        ended_unix_s=2.0,
        status=Status.FAILED,
    )
    return record.model_copy(update=changes)


def an_error(lines: int, characters: int) -> TrialError:
    return TrialError(
        kind=ErrorKind.CRASHED,
        message="m" * characters,
        last_lines=tuple(f"{number} " + "x" * characters for number in range(lines)),
    )


def findings(number: int, characters: int) -> tuple[Finding, ...]:
    return tuple(
        Finding(
            rule=f"rule-{n}",
            severity=Severity.ERROR if n == number - 1 else Severity.INFO,
            symptom="s" * characters,
            evidence=("e" * characters,) * 30,
            cause="c" * characters,
            fix="f" * characters,
        )
        for n in range(number)
    )


def as_read(record: Record) -> Record:
    """What a reader gets, the line having been found to be as promised."""
    line, stored = record_line(record)
    assert len(line) <= MAX_RECORD_BYTES
    assert line.count(b"\n") == 1
    json.loads(line, parse_constant=pytest.fail)
    read = Record.model_validate_json(line)
    assert read == stored
    return read


def test_a_record_that_fits_is_not_changed() -> None:
    record = a_record(
        error=an_error(20, 500),
        findings=findings(1, 300),
        collectives=tuple(a_row(number) for number in range(50)),
        metrics={"step_time_s": 1 / 3, "mfu_ratio": None},
        missing={"mfu_ratio": "CPUs"},
    )
    assert as_read(record) == record


def test_the_rows_that_a_plan_allows_all_fit() -> None:
    rows = tuple(a_row(number) for number in range(MOST_COLLECTIVE_ROWS))
    read = as_read(a_record(collectives=rows, error=an_error(20, 500), findings=findings(9, 400)))
    assert len(read.collectives) == MOST_COLLECTIVE_ROWS
    for row, kept in zip(rows, read.collectives, strict=True):
        assert kept.time_s == pytest.approx(row.time_s, rel=1e-6)


def all_pairs(number: int = 16) -> NcclUse:
    pairs = tuple((a, b) for a in range(number) for b in range(number))
    way = NcclWay(way="GDRDMA", num_pairs=len(pairs), pairs=pairs, num_channels=16, line="x" * 200)
    return NcclUse(network="IB", num_ranks=number, ways=(way,))


def test_what_nccl_did_fits_and_its_pairs_go_before_any_figure() -> None:
    record = a_record(nccl=all_pairs(), metrics={"step_time_s": 1 / 3})
    assert as_read(record) == record
    rows = tuple(a_row(number) for number in range(MOST_COLLECTIVE_ROWS))
    read = as_read(record.model_copy(update={"collectives": rows}))
    assert read.nccl is not None
    assert read.nccl.ways[0].pairs == ()
    assert read.nccl.ways[0].num_pairs == 256
    assert read.missing["nccl.ways.pairs"].startswith("left out: a record has at most")
    assert len(read.collectives) == MOST_COLLECTIVE_ROWS


def test_log_lines_go_first_and_the_last_of_them_stay() -> None:
    read = as_read(a_record(error=an_error(1000, 2000), metrics={"step_time_s": 0.5}))
    assert read.error is not None
    assert len(read.error.last_lines) == 20
    assert read.error.last_lines[-1].startswith("999 ")
    assert all(len(line) <= 500 for line in read.error.last_lines)
    assert read.metrics == {"step_time_s": 0.5}


def test_the_worst_findings_stay_and_the_rest_are_counted() -> None:
    read = as_read(a_record(findings=findings(500, 1000)))
    assert read.findings[0].severity is Severity.ERROR
    assert read.findings[-1].symptom == "480 findings more did not fit in the record"


def test_rows_that_do_not_fit_are_said_to_be_missing() -> None:
    read = as_read(a_record(collectives=tuple(a_row(number) for number in range(2000))))
    assert 100 < len(read.collectives) < 2000
    assert read.missing["collectives"].startswith(f"cut to {len(read.collectives)} rows")
    read = as_read(a_record(nodes=tuple(a_node(number) for number in range(2000))))
    assert read.missing["nodes"].startswith("cut to 16 rows")


@pytest.mark.parametrize("value", [NAN, math.inf, -math.inf])
def test_what_is_no_number_is_null_with_a_reason(value: float) -> None:
    record = a_record(
        metrics={"loss": value, "step_time_s": 0.5},
        collectives=(a_row(), a_row(time_s=value)),
        nodes=(a_node(elapsed_s=value),),
    )
    read = as_read(record)
    assert read.metrics == {"loss": None, "step_time_s": 0.5}
    assert read.missing["loss"] == f"not a finite number: {value}"
    assert len(read.collectives) == 1
    assert read.missing["collectives"] == "1 of 2 held no number that can be used"
    assert read.missing["nodes"] == "1 of 1 held no number that can be used"


@given(
    message=st.text(max_size=3000),
    lines=st.lists(st.text(max_size=3000), max_size=30),
    num_findings=st.integers(0, 60),
    characters=st.integers(0, 5000),
    num_rows=st.integers(0, 400),
    num_nodes=st.integers(0, 300),
    metrics=st.dictionaries(st.text(max_size=200), st.floats() | st.none(), max_size=40),
)
@costly(60)
def test_any_record_fits(
    *,
    message: str,
    lines: list[str],
    num_findings: int,
    characters: int,
    num_rows: int,
    num_nodes: int,
    metrics: dict[str, float | None],
) -> None:
    error = TrialError(kind=ErrorKind.CRASHED, message=message, last_lines=tuple(lines))
    read = as_read(
        a_record(
            error=error,
            findings=findings(num_findings, characters),
            collectives=(a_row(),) * num_rows,
            nodes=(a_node(),) * num_nodes,
            metrics=metrics,
        )
    )
    assert read.record_id == "b0.l0.t0"
    assert read.error is not None


def test_text_that_is_no_unicode_is_stored_all_the_same() -> None:
    error = TrialError.model_construct(kind=ErrorKind.CRASHED, message="\ud800 torn")
    line, _ = record_line(a_record(error=error))
    read = Record.model_validate_json(line)
    assert read.error is not None
    assert read.error.message == "? torn"
