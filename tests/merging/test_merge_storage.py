"""Proves merging/storage.py: a phase of all ranks, the slowest deciding, and what is missing."""

from dataclasses import replace

import pytest
from tests.advise.test_trial_findings import a_record
from tests.merging.outcomes import outcome
from tests.merging.storage_blocks import (
    COLD,
    UNKNOWN,
    WARM,
    all_phases,
    block,
    problem,
    storage_case,
)

from broadgauge.engine.kinds.storage import MOST_STORAGE_ROWS
from broadgauge.merging.merge import MergedTrial, merge
from broadgauge.merging.storage import FEWEST_FOR_P99, MOST_WORDS
from broadgauge.messages.rank import Block
from broadgauge.results.folder.record_line import record_line
from broadgauge.specs.record import MAX_RECORD_BYTES, ErrorKind
from broadgauge.specs.storage_rows import StorageRow

METRICS = (
    *("batch_loading_s", "model_loading_s", "model_loading_gbyte_per_s", "checkpoint_stall_s"),
    *("time_to_durable_s", "checkpoint_gbyte_per_s", "raw_read_gbyte_per_s"),
    *("raw_write_gbyte_per_s", "model_loading_device_share_ratio", "checkpoint_device_share_ratio"),
)


def merged(*ranks: list[Block]) -> MergedTrial:
    return merge(storage_case(ranks_per_node=len(ranks)), outcome(ranks), None)


def test_the_slowest_rank_decides_and_bytes_add_up() -> None:
    found = merged(all_phases(1.0, 1.5), all_phases(2.0, 3.0))
    save = found.measurement.storage[-1]
    assert (save.wait_s, save.durable_s) == (2.0, 3.0)
    assert save.num_bytes == 2 * 10**9
    assert save.gbyte_per_s == pytest.approx(2 / 3.0)  # until it is durable
    assert found.measurement.metrics["checkpoint_stall_s"] == 2.0
    assert found.measurement.metrics["batch_loading_s"] == pytest.approx(2.0 * 100 / 200)
    assert found.error is None


def test_ranks_that_begin_apart_are_laid_beside_each_other() -> None:
    early = block("raw", "read", num_bytes=10**9, busy_s=1.0, began_s=5.0)
    late = block("raw", "read", num_bytes=10**9, busy_s=1.0, began_s=6.0)
    row = merged([early], [late]).measurement.storage[0]
    assert row.gbyte_per_s == pytest.approx(1.0)  # 2 GB in 2 s, not in 1 s


def test_clocks_of_two_nodes_are_not_compared() -> None:
    case = storage_case(ranks_per_node=1).model_copy(update={"nodes": 2})
    first = block("raw", "read", num_bytes=10**9, busy_s=1.0, began_s=5.0)
    ranks = [[first], [replace(first, began_s=90_000.0)]]
    row = merge(case, outcome(ranks), None).measurement.storage[0]
    assert row.gbyte_per_s == pytest.approx(2.0)


def test_every_metric_is_a_figure_or_a_reason() -> None:
    whole = merged(all_phases()).measurement
    assert all(whole.metrics[name] is not None for name in METRICS)
    assert whole.metrics["checkpoint_device_share_ratio"] == pytest.approx(1 / 1.5)
    partly = merged([block("batch_loading", "files", samples=10)]).measurement
    for name in set(METRICS) - {"batch_loading_s"}:
        assert partly.metrics[name] is None
        assert "leaves this phase out" in partly.missing[name]


def test_a_save_whose_end_nobody_knows_says_why() -> None:
    save = block("checkpoint_saving", "dcp", durable_evidence="the bucket can't be asked")
    found = merged([save]).measurement
    assert found.metrics["checkpoint_stall_s"] == 1.0
    assert found.metrics["time_to_durable_s"] is None
    assert found.missing["time_to_durable_s"] == "the bucket can't be asked"


def test_a_phase_that_failed_fails_no_other() -> None:
    spoken = [*all_phases()[:-1], problem("checkpoint_saving", "torch, sharded", "disk is full")]
    found = merged(spoken, spoken)
    assert found.error is None
    assert [row.problem for row in found.measurement.storage] == ["", "", "", "", "disk is full"]
    assert found.measurement.missing["checkpoint_stall_s"] == "disk is full"
    assert found.measurement.metrics["model_loading_s"] == 1.0


def test_the_next_variant_speaks_where_the_first_failed() -> None:
    spoken = [
        problem("checkpoint_saving", "torch", "disk is full"),
        block("checkpoint_saving", "dcp", stall_s=3.0),
    ]
    assert merged(spoken).measurement.metrics["checkpoint_stall_s"] == 3.0


def test_a_trial_in_which_all_failed_has_failed() -> None:
    found = merged([problem("raw", "write", "read-only file system")])
    assert found.error is not None
    assert found.error.kind is ErrorKind.REFUSED
    assert "read-only file system" in found.error.message


def test_a_silent_rank_makes_no_figure() -> None:
    row = merged([block("raw", "read")], []).measurement.storage[0]
    assert row.wait_s is None
    assert row.problem == "rank 1 told nothing of it"


def test_what_failed_warm_stays_measured_cold() -> None:
    spoken = [block("raw", "read"), problem("raw", "read", "the mount hangs")]
    cold, failed = merged(spoken).measurement.storage
    assert (cold.problem, failed.problem) == ("", "the mount hangs")


def test_cold_is_what_all_ranks_prove() -> None:
    cold, warm = (block("raw", "read", cache=proof) for proof in (COLD, WARM))
    assert merged([cold], [cold]).measurement.storage[0].cache == "cold"
    assert merged([warm], [warm]).measurement.storage[0].cache == "warm"
    mixed = merged([cold], [warm]).measurement.storage[0]
    assert mixed.cache == "unknown"
    assert "rank 1 warm" in mixed.cache_evidence


@pytest.mark.parametrize("state", [UNKNOWN, WARM])
def test_metrics_are_of_the_cold_row_where_there_is_one(state: object) -> None:
    other = block("raw", "read", asked_cache="warm", cache=state, busy_s=0.1)
    cold = block("raw", "read", busy_s=1.0)
    for order in ([cold, other], [other, cold]):
        found = merged(order).measurement
        assert found.metrics["raw_read_gbyte_per_s"] == pytest.approx(1e-3)


def test_direct_reads_speak_for_the_raw_rate() -> None:
    direct = block("raw", "read, direct", busy_s=1.0)
    warm = block("raw", "read", asked_cache="warm", cache=WARM, busy_s=0.1)
    found = merged([direct, warm]).measurement
    assert found.metrics["raw_read_gbyte_per_s"] == pytest.approx(1e-3)


def test_a_hundredth_part_needs_operations() -> None:
    def row(count: int) -> StorageRow:
        times_s = tuple(float(i + 1) for i in range(count))
        said = block("raw", "random-read", operations=count, operation_s=times_s)
        return merged([said]).measurement.storage[0]

    few, enough = row(FEWEST_FOR_P99 - 1), row(FEWEST_FOR_P99)
    assert (few.operation_p50_s, few.operation_p99_s) == (250.0, None)
    assert (enough.operation_p50_s, enough.operation_p99_s) == (250.0, 495.0)


def test_each_save_and_each_batch_is_in_the_series() -> None:
    saves = [
        block("checkpoint_saving", f"dcp, sharded, save {n}", stall_s=s, durable_s=2 * s)
        for n, s in ((1, 1.0), (2, 3.0))
    ]
    batches = block("batch_loading", "files", samples=2, step_stalls_s=(0.1, 0.5))
    slower = block("batch_loading", "files", samples=2, step_stalls_s=(0.2, 0.3))
    found = merged([*saves, batches], [*saves, slower])
    assert found.series["storage_wait_s"] == ((0.0, 1.0), (0.0, 3.0), (1.0, 0.2), (1.0, 0.5))
    row = found.measurement.storage[0]
    assert (row.variant, row.wait_s, row.durable_s) == ("dcp, sharded", 2.0, 4.0)
    assert row.num_bytes == 2_000_000  # of one save


def test_the_most_rows_fit_in_a_record() -> None:
    """With words as long as they may be: a read proves its cache, a save when it was durable."""
    words = "w" * MOST_WORDS
    row = StorageRow(
        phase="checkpoint_saving",
        variant="dcp-async-process, sharded",
        asked_cache="cold",
        cache="unknown",
        durable_evidence=words,
        num_bytes=10**12,
        **dict.fromkeys(
            ("wait_s", "durable_s", "gbyte_per_s", "operation_p50_s", "operation_p99_s", "cpu_s"),
            0.012345678901234567,
        ),
        operations=10**6,
        parts_s=dict.fromkeys(
            ("gather", "device_to_host", "serialise", "write", "sync", "upload"),
            0.012345678901234567,
        ),
        samples=10**6,
    )
    assert len(row.model_dump_json()) < 1100
    record = a_record().model_copy(update={"storage": (row,) * MOST_STORAGE_ROWS})
    line, kept = record_line(record)
    assert len(line) <= MAX_RECORD_BYTES
    assert kept.storage == record.storage
