"""Are a trial's figures kept, however many repetitions, steps and ranks its storage had?"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.results.folder.test_folder_records import a_record

from broadgauge.messages.storage import Access
from broadgauge.results.folder.record_line import record_line
from broadgauge.specs.records.file_access_row import FileAccessRow
from broadgauge.specs.records.record import MAX_RECORD_BYTES, Record

METRICS = {"wait_per_100_samples_s": 1 / 3}


def access(kind: Access, number: int, ranks: int = 0, steps: int = 0) -> FileAccessRow:
    parts_s = {"plan": 1 / 3, "serialise": 2 / 3, "write": 1 / 7, "fsync": 1 / 9}
    return FileAccessRow(
        access=kind,
        repetition=number,
        size_bytes=10**9,
        time_s=sum(parts_s.values()),
        slowest_rank=0,
        parts_s=parts_s,
        stall_s=1 / 3,
        parts_of_ranks=tuple(parts_s | {"write": 1 / 7 + rank} for rank in range(ranks)),
        waits_s=(1 / 3,) * steps,
        operations=1000,
        file_system="ext4",
    )


def kept(*rows: FileAccessRow) -> Record:
    line, stored = record_line(a_record(metrics=METRICS, file_accesses=rows))
    assert len(line) <= MAX_RECORD_BYTES
    json.loads(line, parse_constant=pytest.fail)
    read = Record.model_validate_json(line)
    assert read == stored
    return read


@given(st.integers(1, 60), st.integers(0, 200), st.integers(0, 500))
def test_metrics_stay_and_both_accesses(repetitions: int, ranks: int, steps: int) -> None:
    rows = [
        access(kind, number, ranks, steps)
        for kind in ("write", "read")
        for number in range(repetitions)
    ]
    read = kept(*rows)
    assert read.metrics == METRICS
    assert {row.access for row in read.file_accesses} == {"write", "read"}


def test_what_was_left_out_is_said() -> None:
    read = kept(*(access("read", number, steps=5000) for number in range(2)))
    assert not any(row.waits_s for row in read.file_accesses)
    assert "file_accesses.waits_s" in read.missing
    assert "file_accesses.parts_of_ranks" not in read.missing


def test_of_many_ranks_the_one_that_works_longest_stays() -> None:
    read = kept(*(access("write", number, ranks=400) for number in range(3)))
    for row in read.file_accesses:
        assert row.busiest_parts_s["write"] == pytest.approx(1 / 7 + 399)
    assert "file_accesses.parts_of_ranks" in read.missing


def test_of_many_repetitions_every_second_stays() -> None:
    read = kept(*(access("write", number, ranks=1) for number in range(200)))
    assert [row.repetition for row in read.file_accesses][:2] == [0, 2]
    assert read.missing["file_accesses"].startswith("cut to ")
