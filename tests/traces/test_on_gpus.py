"""Proves what is said of real traces of two H100s over NVLink (tests/traces/trim.py says whose)."""

from pathlib import Path

import pytest

from broadgauge.traces.attribution.explaining import explain
from broadgauge.traces.explanation import TraceExplanation
from broadgauge.traces.reading.reader import read_trace

RECORDED = Path(__file__).parent / "recorded"
LATE_S = 0.041
"""How long rank 1 slept before each backward pass."""


def explained(kind: str) -> TraceExplanation:
    return explain([read_trace(path) for path in sorted(RECORDED.glob(f"h100-{kind}.*"))])


@pytest.mark.parametrize("kind", ["late", "fsdp"])
def test_parts_add_up(kind: str) -> None:
    found = explained(kind)
    assert found.is_all_ranks
    assert found.notes == ()
    for rank in found.ranks:
        assert rank.has_gpu
        for step in rank.steps:
            assert step.parts.total_ns == step.duration_ns
            assert 0 < step.parts.compute_ns < step.gpu_busy_ns


def test_a_late_rank_is_found_with_its_delay_and_cause() -> None:
    """What rank 0's kernels spun is no transfer: NVLink carried each in a tenth of the time."""
    found = explained("late")
    (late,) = found.stragglers
    assert (late.rank, late.cause) == (1, "host_idle")
    assert late.delay_s == pytest.approx(LATE_S, abs=2e-3)
    first, second = found.ranks
    assert (first.parts.straggler_wait_ns or 0) / 2e9 == pytest.approx(LATE_S, abs=2e-3)
    assert second.parts.straggler_wait_ns == 0
    large = [each for each in found.collectives if (each.message_bytes or 0) > 30e6]
    assert all(150 < (each.busbw_gbyte_per_s or 0) < 450 for each in large)


def test_one_rank_alone_bounds_it() -> None:
    (path,) = RECORDED.glob("h100-late.rank0.*")
    alone = explain([read_trace(path)])
    assert alone.ranks[0].parts.straggler_wait_ns is None
    assert alone.ranks[0].parts.exposed_communication_ns / 2e9 > LATE_S - 2e-3


def test_fsdp2_copies_and_gathers_are_told_apart() -> None:
    found = explained("fsdp")
    calls = {str(each.kind): each.calls_per_step_count for each in found.collectives}
    assert calls == {"all_gather": 6, "reduce_scatter": 3}
    assert all(rank.parts.fsdp_copies_ns > 100_000 for rank in found.ranks)
    first = found.first_reduction
    assert first is not None
    assert (first.kind, first.name) == ("reduce_scatter", "FSDP::post_backward_reduce (2)")
    assert found.compute_slowdown_s is not None
    assert found.compute_slowdown_s > 0
