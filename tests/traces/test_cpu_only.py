"""Proves what is said of CPUs: Gloo's made traces of known parts, and real ones recorded here."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.traces import gloo

from broadgauge.traces.attribution.explaining import explain
from broadgauge.traces.explanation import TraceExplanation
from broadgauge.traces.reading.reader import read_trace

HERE = Path(__file__).parent


def explained(paths: list[Path]) -> TraceExplanation:
    return explain([read_trace(path) for path in paths])


@pytest.mark.parametrize("late_us", [(0, 0), (0, 700), (250, 0, 900)])
def test_each_part_of_a_step_over_gloo(late_us: tuple[int, ...], tmp_path: Path) -> None:
    found = explained(gloo.write(tmp_path, late_us))
    assert found.is_all_ranks
    for rank, late in zip(found.ranks, late_us, strict=True):
        for step in rank.steps:
            parts = step.parts
            computed = gloo.FORWARD_US + gloo.BACKWARD_US + late + gloo.OPTIMIZER_US
            assert parts.compute_ns == 1000 * computed
            assert parts.data_wait_ns == 1000 * gloo.LOAD_US
            assert parts.exposed_communication_ns == 1_500_000
            assert parts.straggler_wait_ns == 1000 * (max(late_us) - late)
            assert parts.host_idle_ns == 1000 * gloo.PYTHON_US
            assert parts.total_ns == step.duration_ns
            assert step.bound_by == "cpu"
    late_ranks = {each.rank: each.cause for each in found.stragglers}
    assert late_ranks == ({late_us.index(max(late_us)): "compute"} if max(late_us) else {})


def test_one_rank_over_gloo_can_not_tell_waiting(tmp_path: Path) -> None:
    found = explained(gloo.write(tmp_path, (0, 700))[:1])
    parts = found.ranks[0].steps[0].parts
    assert parts.straggler_wait_ns is None
    assert parts.exposed_communication_ns == 2_200_000
    assert "upper bound" in found.notes[0]


def recorded(kind: str, version: str) -> TraceExplanation:
    paths = sorted((HERE / "recorded").glob(f"{kind}.rank*.torch-{version}.json.gz"))
    assert len(paths) == 2
    return explained(paths)


@pytest.mark.parametrize(
    ("kind", "version", "calls"),
    [
        ("ddp", "2.6", {"all_reduce": 1}),
        ("ddp", "2.11", {"all_reduce": 1}),
        ("fsdp2", "2.9", {"all_gather": 3, "reduce_scatter": 2}),
        ("fsdp2", "2.11", {"all_gather": 3, "reduce_scatter": 2}),
    ],
)
def test_a_recorded_trace_adds_up(kind: str, version: str, calls: dict[str, int]) -> None:
    """As tests/traces/record.py wrote it with this torch: two steps of two Gloo ranks."""
    found = recorded(kind, version)
    assert (found.num_steps, found.step_numbers) == (2, (2, 3))
    assert found.is_all_ranks
    assert found.has_steps
    for rank in found.ranks:
        assert rank.parts.total_ns == sum(step.duration_ns for step in rank.steps)
        assert rank.parts.compute_ns > 0
        assert rank.parts.data_wait_ns > 0
        assert rank.parts.host_idle_ns > 0
        assert (rank.parts.fsdp_copies_ns > 0) == (kind == "fsdp2")
    assert {str(each.kind): each.calls_per_step_count for each in found.collectives} == calls
    first = found.first_reduction
    assert first is not None
    if kind == "fsdp2":
        assert (first.kind, first.name) == (
            "reduce_scatter",
            "FSDP::post_backward_reduce (blocks.0)",
        )


def test_a_recorded_sleep_in_the_data_loader_is_found() -> None:
    """Rank 1 slept 23 ms in every step, with torch 2.6; a sleep is never shorter."""
    found = recorded("ddp-late", "2.6")
    (late,) = found.stragglers
    assert (late.rank, late.cause) == (1, "data_wait")
    first, second = (rank.parts.seconds(found.num_steps) for rank in found.ranks)
    assert second["data_wait"] is not None
    assert first["data_wait"] is not None
    excess_s = second["data_wait"] - first["data_wait"]
    assert excess_s == pytest.approx(0.023, abs=0.002)
    assert late.delay_s > 0.5 * excess_s


@pytest.mark.slow
@pytest.mark.measuring
def test_a_late_data_loader_is_found_in_a_real_run(tmp_path: Path) -> None:
    """Rank 1 loads 0.3 s longer: its part, and the others' wait, are most of the step."""
    command = [sys.executable, str(HERE / "record.py"), "ddp", str(tmp_path), "--port", "29619"]
    subprocess.run([*command, "--plant", "load:0.3", "--rank", "1"], check=True)
    found = explained(sorted(tmp_path.glob("*.json.gz")))
    first, second = found.ranks
    assert second.parts.data_wait_ns > 0.5 * second.parts.total_ns
    assert (first.parts.straggler_wait_ns or 0) > 0.5 * first.parts.total_ns
    assert found.stragglers[0].rank == 1
    assert found.stragglers[0].cause == "data_wait"
