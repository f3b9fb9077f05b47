"""What do the waits of ranks that loaded batches add up to?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.merging.outcomes import make_case

from broadgauge.merging.batches import merge_batches
from broadgauge.merging.metrics import MeasurementBuilder
from broadgauge.merging.rank_blocks import read_blocks
from broadgauge.messages.codec import encode
from broadgauge.messages.storage import FileAccess
from broadgauge.specs.workloads.workload import BatchesWorkload

WORKLOAD = BatchesWorkload(kind="storage", phase="batches", sample_size=10, batch_per_rank=2)


def epoch(number: int, waits_s: list[float], compute_s: float = 0.0) -> FileAccess:
    """Two samples a step."""
    parts_s = {"start": waits_s[0], "compute": compute_s, "wait": sum(waits_s[1:]), "end": 0.5}
    return FileAccess(
        trial_id="t",
        label=f"read/{number}",
        access="read",
        size_bytes=20 * len(waits_s),
        operations_count=None,
        seconds=sum(parts_s.values()),
        parts_s=parts_s,
        stall_s=sum(waits_s),
        waits_s=tuple(waits_s),
        device_bytes=40 * len(waits_s),
        cache="cold",
    )


def merged(*ranks: list[FileAccess]) -> MeasurementBuilder:
    case = make_case(WORKLOAD, nodes=1, ranks_per_node=len(ranks))
    blocks = read_blocks([[encode(each) for each in rank] for rank in ranks])
    return merge_batches(case, WORKLOAD, blocks, ())


def test_the_rank_that_waits_longest_counts_and_computing_is_no_wait() -> None:
    first = [epoch(0, [1.0, 0.5, 0.5], compute_s=9.0)]
    second = [epoch(0, [3.0, 0.125, 0.125])]
    found = merged(first, second)
    (row,) = found.file_accesses
    assert (row.slowest_rank, row.stall_s, row.operations) == (0, 3.25, None)
    assert row.waits_s == (1.0, 0.5, 0.5)
    assert row.parts_of_ranks == (first[0].parts_s, second[0].parts_s)
    assert found.metrics["wait_per_100_samples_s"] == pytest.approx(3.25 * 100 / 6)
    assert found.metrics["batch_wait_s"] == pytest.approx(0.5)
    assert found.metrics["batch_wait_p99_s"] == pytest.approx(0.5)
    assert found.metrics["read_gbyte_per_s"] == pytest.approx(120 / 3.75 / 1e9)
    assert found.metrics["device_read_ratio"] == pytest.approx(2.0)


def test_ranks_whose_samples_are_not_as_many_are_compared_by_samples() -> None:
    found = merged([epoch(0, [1.0, 1.0])], [epoch(0, [1.5])])
    assert found.metrics["wait_per_100_samples_s"] == pytest.approx(1.5 * 100 / 2)
    assert found.metrics["batch_wait_s"] == pytest.approx(1.0)


waits = st.lists(st.floats(1e-6, 10), min_size=2, max_size=2)


@given(waits, waits)
def test_each_repetition_counts_alike(first: list[float], second: list[float]) -> None:
    found = merged([epoch(0, first), epoch(1, second)])
    assert found.series["wait_per_100_samples_s"] == (25 * sum(first), 25 * sum(second))
    assert found.metrics["batch_wait_s"] == pytest.approx((first[1] + second[1]) / 2)


def test_one_step_has_no_later_ones() -> None:
    found = merged([epoch(0, [1.0])])
    assert found.metrics["wait_per_100_samples_s"] == 50.0
    assert found.metrics["batch_wait_s"] is None
    assert "more than one step" in found.missing["batch_wait_p99_s"]


def test_an_epoch_that_a_rank_did_not_end_is_left_out() -> None:
    found = merged([epoch(0, [1.0, 1.0])], [])
    assert found.file_accesses == ()
    for metric in ("wait_per_100_samples_s", "batch_wait_s", "read_gbyte_per_s"):
        assert found.missing[metric] == "no repetition was finished by all ranks"
