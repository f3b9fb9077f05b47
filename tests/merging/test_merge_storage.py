"""What do ranks that wrote and read files add up to?"""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.merging.outcomes import make_case, outcome

from broadgauge.merging.merge import MergedTrial, merge
from broadgauge.messages.storage import Access, CacheState, FileAccess
from broadgauge.specs.records.record import Measurement
from broadgauge.specs.workloads.workload import (
    AnyPhase,
    CheckpointWorkload,
    ModelLoadWorkload,
    RawFilesWorkload,
)

WORKLOAD = RawFilesWorkload(kind="storage")
SIZE = 1_000_000


def said(
    access: Access,
    number: int,
    seconds: float,
    cache: CacheState = "cold",
    device: int | None = SIZE,
    *,
    cached: int | None = 0,
) -> FileAccess:
    is_read = access == "read"
    return FileAccess(
        trial_id="t",
        label=f"{access}/{number}",
        access=access,
        size_bytes=SIZE,
        operations_count=4,
        seconds=seconds,
        parts_s={access: 0.75 * seconds, "close": 0.25 * seconds},
        device_bytes=device if is_read else None,
        cached_before_bytes=cached if is_read else None,
        cache=cache if is_read else None,
        file_system="ext4",
    )


def trial(*ranks: list[FileAccess], workload: AnyPhase = WORKLOAD) -> MergedTrial:
    case = make_case(workload, nodes=1, ranks_per_node=len(ranks))
    return merge(case, outcome(ranks), None)


def merged(*ranks: list[FileAccess], workload: AnyPhase = WORKLOAD) -> Measurement:
    return trial(*ranks, workload=workload).measurement


SAVE = CheckpointWorkload(kind="storage", phase="checkpoint")


def save(number: int, stall_s: float, **parts_s: float) -> FileAccess:
    return replace(said("write", number, sum(parts_s.values())), stall_s=stall_s, parts_s=parts_s)


def test_the_stall_is_of_the_rank_that_waits_longest_and_durable_of_the_slowest() -> None:
    first = [save(0, 3.0, gather=3.0)]
    second = [save(0, 2.0, gather=1.0, write=1.0, fsync=4.0)]
    found = merged(first, second, workload=SAVE)
    (row,) = found.file_accesses
    assert (row.stall_s, row.time_s, row.slowest_rank) == (3.0, 6.0, 1)
    assert row.parts_of_ranks == (first[0].parts_s, second[0].parts_s)
    assert (found.metrics["save_stall_s"], found.metrics["save_durable_s"]) == (3.0, 6.0)
    assert found.metrics["write_gbyte_per_s"] == pytest.approx(2 * SIZE / 6.0 / 1e9)
    assert found.metrics.keys().isdisjoint({"write_time_s", "read_time_s", "device_read_ratio"})


def test_a_rank_that_waits_for_another_is_not_judged_by_it() -> None:
    """Ranks of a distributed checkpoint end together: the last is any of them."""
    waits = [save(0, 5.0, write=1.0, fsync=0.5, metadata=3.6)]
    works = [save(0, 5.0, write=1.0, fsync=3.9, metadata=0.1)]
    (row,) = merged(waits, works, workload=SAVE).file_accesses
    assert row.slowest_rank == 0
    assert row.busiest_parts_s == works[0].parts_s


times = st.lists(st.floats(1e-4, 10), min_size=2, max_size=2)


@given(times, times)
def test_the_slowest_rank_counts_in_each_repetition(
    first: list[float], second: list[float]
) -> None:
    found = trial(
        *([said("read", n, s) for n, s in enumerate(times_s)] for times_s in (first, second))
    )
    slowest = [max(pair) for pair in zip(first, second, strict=True)]
    assert found.series["read_time_s"] == tuple(slowest)
    assert found.measurement.metrics["read_time_s"] == pytest.approx(sum(slowest) / 2)
    assert found.measurement.metrics["read_gbyte_per_s"] == pytest.approx(
        2 * SIZE / (sum(slowest) / 2) / 1e9
    )
    for row, time_s in zip(found.measurement.file_accesses, slowest, strict=True):
        assert sum(row.parts_s.values()) == pytest.approx(row.time_s) == pytest.approx(time_s)
        assert row.size_bytes == 2 * SIZE


def test_what_one_rank_has_not_finished_is_left_out() -> None:
    found = merged([said("write", 0, 1.0), said("write", 1, 1.0)], [said("write", 0, 2.0)])
    assert [row.repetition for row in found.file_accesses] == [0]
    assert found.metrics["read_time_s"] is None
    assert found.missing["read_time_s"] == "no repetition was finished by all ranks"


def test_ranks_whose_bytes_came_from_elsewhere_are_not_called_cold() -> None:
    found = merged([said("read", 0, 1.0)], [said("read", 0, 2.0, "warm", 0)])
    assert found.file_accesses[0].cache == "unknown"
    assert found.metrics["device_read_ratio"] == 0.5


def test_bytes_of_devices_that_nobody_counted_are_unknown() -> None:
    found = merged([said("read", 0, 1.0)], [said("read", 0, 2.0, device=None)])
    assert found.metrics["device_read_ratio"] is None
    assert "does not say" in found.missing["device_read_ratio"]


def test_what_was_in_memory_before_is_of_all_ranks_or_unknown() -> None:
    found = merged([said("read", 0, 1.0, cached=300)], [said("read", 0, 2.0, cached=SIZE)])
    assert found.file_accesses[0].cached_before_bytes == SIZE + 300
    found = merged([said("read", 0, 1.0, cached=300)], [said("read", 0, 2.0, cached=None)])
    assert found.file_accesses[0].cached_before_bytes is None
    found = merged([said("write", 0, 1.0)])
    assert found.file_accesses[0].cached_before_bytes is None


LOAD = ModelLoadWorkload(kind="storage", phase="load")


def load(seconds: float, **changes: object) -> FileAccess:
    whole = said("read", 0, seconds)
    return replace(whole, stall_s=seconds, **changes)  # type: ignore[arg-type]


def test_a_rank_that_reads_no_file_says_nothing_of_the_cache() -> None:
    """It is sent what another has read, and is the slowest."""
    reads = load(3.0, parts_s={"read": 2.0, "broadcast": 1.0}, evidence="of the device")
    nothing = {"size_bytes": 0, "device_bytes": 0, "cached_before_bytes": 0, "cache": None}
    sent = load(3.1, parts_s={"broadcast": 3.1}, **nothing)
    found = merged([reads], [sent], workload=LOAD)
    (row,) = found.file_accesses
    assert (row.slowest_rank, row.cache, row.evidence) == (1, "cold", "of the device")
    assert (row.size_bytes, row.device_bytes) == (SIZE, SIZE)
    assert row.busiest_parts_s == reads.parts_s
    assert found.metrics["model_load_s"] == pytest.approx(3.1)
    assert found.metrics["read_gbyte_per_s"] == pytest.approx(SIZE / 3.1 / 1e9)


def test_loads_of_ranks_that_were_cold_and_warm_are_unknown() -> None:
    (row,) = merged([load(1.0)], [load(1.0, cache="warm")], workload=LOAD).file_accesses
    assert row.cache == "unknown"


@pytest.mark.parametrize(
    ("told", "merged_ratio"), [((1.0, 0.5), 0.75), ((1.0, None), None), ((None, None), None)]
)
def test_what_file_systems_hold_is_known_of_all_ranks_or_not(
    told: tuple[float | None, ...], merged_ratio: float | None
) -> None:
    ranks = [[replace(said("write", 0, 1.0), held_ratio=ratio)] for ratio in told]
    (row,) = merged(*ranks).file_accesses
    assert row.held_ratio == merged_ratio
