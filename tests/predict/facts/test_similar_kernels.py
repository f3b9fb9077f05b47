"""What a measured step says of its own kernels reaches those of like sizes, and no others."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.costly import costly

from broadgauge.predict.calibration.factors import Observation, fit, step_s
from broadgauge.predict.case import ModelShape, SplitStrategy, TrainingCase
from broadgauge.predict.facts.knowledge import Knowledge, default_knowledge
from broadgauge.predict.facts.similar_kernels import (
    KERNEL_LOG_SD,
    MISS_LOG_SD,
    WAY_LOG_SD,
    covariances,
    left_ratio,
    misses_of,
    same_kernels,
    shape_slowness,
)

MODEL = ModelShape(
    name="1b", layers=24, hidden=2048, vocabulary=50000, params=1.3e9, active_params=1.3e9
)
CASE = TrainingCase(
    model=MODEL,
    gpu="a100-sxm-80gb",
    strategy="ddp",
    seq_len=2048,
    global_batch=8,
    micro_batch=8,
    framework="llm-foundry",
)


def batch(size: float) -> TrainingCase:
    return replace(CASE, micro_batch=size, global_batch=size)


def seconds(case: TrainingCase, knowledge: Knowledge) -> float:
    return float(step_s([case], knowledge)[0])


def observed(case: TrainingCase, ratio: float) -> Observation:
    return Observation(case=case, step_time_s=ratio * seconds(case, default_knowledge()))


def test_the_nearer_the_sizes_the_more_is_in_common() -> None:
    [row] = covariances([batch(8)], [batch(8), batch(12), batch(16), batch(512)])
    assert row[0] == pytest.approx(KERNEL_LOG_SD**2)
    assert list(row) == sorted(row, reverse=True)
    assert row[3] - WAY_LOG_SD**2 < 0.01 * MISS_LOG_SD**2


@pytest.mark.parametrize(
    "other",
    [{"strategy": "fsdp"}, {"lora": True}, {"recompute": "full"}, {"flash_attention": False}],
)
def test_one_way_of_training_has_something_in_common_at_all_sizes(other: dict[str, Any]) -> None:
    [near, far, another] = covariances([CASE], [CASE, batch(4096), replace(CASE, **other)])[0]
    assert near == pytest.approx(MISS_LOG_SD**2 + WAY_LOG_SD**2)
    assert far == pytest.approx(WAY_LOG_SD**2, rel=1e-3)
    assert another == pytest.approx(MISS_LOG_SD**2)


@pytest.mark.parametrize(
    ("strategy", "stages"), [("fsdp", (None, 3)), ("hsdp", (None, 3)), ("megatron", (None, 0, 1))]
)
def test_one_way_is_one_however_its_stage_is_written(
    strategy: SplitStrategy, stages: tuple[int | None, ...]
) -> None:
    """A table's rows say 3 of FSDP, flags say nothing; Megatron's optimizer is split or not."""
    cases = [replace(CASE, strategy=strategy, zero_stage=stage) for stage in stages]
    assert covariances(cases, cases) == pytest.approx(
        np.full((len(cases), len(cases)), MISS_LOG_SD**2 + WAY_LOG_SD**2)
    )
    split = replace(CASE, strategy=strategy, zero_stage=2)
    assert covariances([split], cases) == pytest.approx(np.full((1, len(cases)), MISS_LOG_SD**2))


@pytest.mark.parametrize("other", [{"gpu": "h100-sxm"}, {"precision": "fp16"}, {"framework": "hf"}])
def test_other_kernels_have_nothing_in_common(other: dict[str, str]) -> None:
    assert covariances([CASE], [replace(CASE, **other)]) == 0  # type: ignore[arg-type]


@costly(30)
@given(
    st.lists(st.tuples(st.integers(1, 64), st.sampled_from([128, 512, 2048])), max_size=8),
    st.data(),
)
def test_covariances_are_those_of_something(
    sizes: list[tuple[int, int]], data: st.DataObject
) -> None:
    cases = [replace(batch(size), seq_len=length) for size, length in [(1, 128), *sizes]]
    table = covariances(cases, cases)
    assert np.allclose(table, table.T)
    assert np.linalg.eigvalsh(table).min() > -1e-9
    order = data.draw(st.permutations(range(len(cases))))
    again = covariances([cases[index] for index in order], cases)
    assert np.allclose(again, table[order])


def test_nothing_known_changes_nothing() -> None:
    assert shape_slowness([CASE, CASE], ()).tolist() == [1, 1]
    other = replace(batch(4096), strategy="fsdp")
    assert shape_slowness([CASE], misses_of([other], [9.0], [0.0]))[0] == pytest.approx(1, abs=1e-3)


def test_a_slow_way_of_training_says_little_of_another() -> None:
    """Three steps with adapters, far apart in size, each half as fast again as predicted."""
    adapted = [replace(batch(size), lora=True) for size in (1, 16, 256)]
    known = fit([observed(case, 1.5) for case in adapted], default_knowledge())

    def moved(case: TrainingCase) -> float:
        return seconds(case, known) / seconds(case, default_knowledge())

    assert moved(replace(batch(64), lora=True)) > moved(batch(64)) > 1


def test_two_steps_that_disagree_are_each_believed_near_themselves() -> None:
    """One factor would be right for neither."""
    known = fit([observed(batch(1), 1.2), observed(batch(64), 1 / 1.2)], default_knowledge())
    for size, ratio in ((1, 1.2), (64, 1 / 1.2)):
        case = batch(size)
        moved = seconds(case, known) / seconds(case, default_knowledge())
        assert np.log(moved) == pytest.approx(np.log(ratio), abs=0.06)


def test_measured_again_replaces_what_was_known_of_the_same_kernels() -> None:
    once = fit([observed(batch(1), 1.2)], default_knowledge())
    twice = fit([observed(batch(2), 1.1)], once)
    assert len(twice.misses) == 1
    other = replace(CASE, gpu="h100-sxm")
    assert len(fit([observed(other, 1.1)], twice).misses) == 2


@costly(8)
@given(st.floats(2.0, 3.0), st.booleans(), st.sampled_from([2, 4]))
def test_a_far_step_is_its_configurations_and_not_its_neighbours(
    ratio: float, is_slow: bool, gpus: int
) -> None:
    """On more GPUs the same kernels run; the others agree with the prior, so that no factor moves.

    Half of what is far from both may be taken for the sizes near it, and not more.
    """
    far = math.log(ratio if is_slow else 1 / ratio)
    rows = [observed(batch(1), 1.0), observed(batch(16), math.exp(far)), observed(batch(64), 1.0)]
    known = fit(rows, default_knowledge())

    def moved(case: TrainingCase) -> float:
        return math.log(seconds(case, known) / seconds(case, default_knowledge())) / far

    twin = replace(batch(16), gpus_per_node=gpus, data_parallel=gpus, global_batch=16 * gpus)
    assert moved(twin) == pytest.approx(1, abs=0.15)
    assert moved(batch(15)) < 0.5
    assert abs(moved(batch(1))) < 0.15


def test_same_kernels_run_on_any_number_of_gpus() -> None:
    more = replace(CASE, gpus_per_node=8, data_parallel=8, global_batch=64)
    table = same_kernels([CASE, more, batch(9), replace(CASE, gpu="h100-sxm")])
    assert table[0].tolist() == [1, 1, 0, 0]
    assert np.array_equal(table, table.T)


def test_what_is_left_unknown_grows_with_the_distance() -> None:
    known = fit([observed(batch(8), 1.3)], default_knowledge())
    near = [CASE, batch(9), batch(4096), replace(CASE, lora=True), replace(batch(4096), lora=True)]
    left = left_ratio(near, known.misses)
    assert left.tolist() == sorted(left)
    assert left[0] < 0.4
    assert left[2] < 0.9 < left[4] < 1
    assert np.isnan(left_ratio([replace(CASE, gpu="h100-sxm")], known.misses)).all()
    assert np.isnan(left_ratio([CASE], ())).all()


@costly(15)
@given(st.lists(st.sampled_from([1, 4, 16, 64, 256]), min_size=1, max_size=4), st.booleans())
def test_more_steps_that_agree_never_leave_more_unknown(sizes: list[int], is_adapted: bool) -> None:
    rows = [observed(replace(batch(size), lora=is_adapted), 1.1) for size in sizes]
    asked = [batch(size) for size in (1, 2, 32)]
    fewer = left_ratio(asked, fit(rows[:1], default_knowledge()).misses)
    more = left_ratio(asked, fit(rows, default_knowledge()).misses)
    assert (more <= fewer + 0.02).all()
    assert ((more >= 0) & (more <= 1)).all()
