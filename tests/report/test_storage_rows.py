"""Does a storage's row hold the fastest way of each phase, and claim no more than was measured?"""

from tests.report.sample_batches import batches, batches_run
from tests.report.sample_storages import LOAD, SAVE, STORAGES, WORKLOADS, storage_run

from broadgauge.report.rows.storages import HEAD, storage_rows
from broadgauge.specs.storages.storage import Storage

DURABLE = Storage(name="durable", path="/data", is_durable=True)


def test_a_row_has_each_phase_and_says_what_outlives_the_node() -> None:
    rows = storage_rows(storage_run([*STORAGES[:1], DURABLE], workloads=[*WORKLOADS, LOAD, SAVE]))
    assert rows == [
        ("disk", "–", "4 s", "7 s", "8 s", "unknown"),
        ("durable", "–", "4 s", "7 s", "8 s", "yes"),
    ]
    assert len(HEAD) == len(rows[0])


def test_of_several_ways_the_fastest_cold_one_is_named() -> None:
    """The warm one takes a quarter of its time."""
    (row,) = storage_rows(batches_run([batches("cold"), batches("warm"), LOAD]))
    assert row[1:3] == ("5 s\nbatches-cache-cold", "4 s")


def test_what_was_found_in_memory_is_said() -> None:
    (row,) = storage_rows(batches_run([batches("cold"), LOAD], found={"cold": "warm"}))
    assert row[1] == "5 s\ncache warm"


def test_one_phase_alone_is_put_beside_nothing() -> None:
    assert storage_rows(storage_run(workloads=[LOAD])) == []
    assert storage_rows(storage_run()) == []
    assert storage_rows(batches_run([batches("cold"), batches("warm")])) == []
