"""Is what was measured told from what is extrapolated, and is the whole its steps?"""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.merging.outcomes import make_case

from broadgauge.merging.epochs import RunSteps, epoch_time, put_completion, training_time
from broadgauge.merging.metrics import MeasurementBuilder
from broadgauge.messages.rank import TrainSummary
from broadgauge.specs.workloads.workload import TrainWorkload

SECONDS = st.floats(1e-3, 10)
RUNS = st.builds(
    RunSteps,
    warm_up_s=SECONDS,
    warm_up_steps=st.integers(1, 6),
    measured_s=st.lists(SECONDS, min_size=1, max_size=20),
    mean_s=SECONDS,
)
SAID = TrainSummary(
    trial_id="t",
    parameters=1,
    tokens_per_step=1,
    sequences_per_step=1,
    gradient_bytes=4,
    flops_per_step=1.0,
    peak_memory_bytes=1,
    data="made up",
    parameter_checksum=1.0,
    start_up_s=2.0,
    load_s=1.0,
    warm_up_s=3.0,
)


def test_a_second_epoch_that_was_measured_is_the_sum_of_its_steps() -> None:
    steps = RunSteps(
        warm_up_s=9.0, warm_up_steps=2, measured_s=(1.0, 2.0, 3.0, 4.0, 5.0), mean_s=3.0
    )
    assert epoch_time(steps, 3) == (2.0 + 3.0 + 4.0, 1.0)  # steps 3, 4 and 5
    assert epoch_time(steps, 4) == (4 * 3.0, 3 / 4)  # its step 7 was not run
    assert epoch_time(steps, 1) == (3.0, 0.0)  # in the warm-up
    assert epoch_time(steps, 100) == (300.0, 0.0)


def test_a_training_is_what_was_run_and_the_rest_at_the_mean() -> None:
    steps = RunSteps(warm_up_s=9.0, warm_up_steps=2, measured_s=(1.0, 3.0), mean_s=2.0)
    assert training_time(steps, 4) == (13.0, 1.0)
    assert training_time(steps, 10) == (13.0 + 6 * 2.0, 0.4)
    assert training_time(steps, 3) == (10.0, 1.0)
    assert training_time(steps, 1) == (4.5, 1.0)


@given(RUNS, st.integers(1, 50))
def test_more_steps_take_longer_and_shares_are_shares(steps: RunSteps, number: int) -> None:
    seconds, ratio = training_time(steps, number)
    longer, smaller = training_time(steps, number + 1)
    assert longer > seconds
    assert 0 < smaller <= ratio <= 1
    epoch_s, measured = epoch_time(steps, number)
    assert 0 <= measured <= 1
    if measured < 1:
        assert math.isclose(epoch_s, steps.mean_s * number)


def completion(*summaries: TrainSummary, **keys: object) -> MeasurementBuilder:
    train = TrainWorkload.model_validate(
        {"kind": "train", "batch_per_rank": 2, "accumulation": 3, "warm_up_steps": 2} | keys
    )
    found = MeasurementBuilder()
    samples = (4, 4, 2, 4) if train.packing else ()
    case = make_case(train, nodes=2)
    put_completion(
        found, case, train, summaries, measured_s=(1.0, 1.0, 1.0, 1.0), num_samples=samples
    )
    return found


def test_an_epoch_has_as_many_steps_as_its_samples_need() -> None:
    """12 samples a step: 25 are 3 steps. The second epoch is steps 3 to 5: all were measured."""
    found = completion(SAID, SAID, epoch_samples=25, epochs=4).metrics
    assert (found["epoch_time_s"], found["epoch_measured_ratio"]) == (3.0, 1.0)
    assert found["training_time_s"] == 3.0 + 10 * 1.0
    assert found["completion_time_s"] == 2.0 + 1.0 + 13.0
    assert found["completion_measured_ratio"] == 0.5


def test_the_slowest_rank_counts_and_nothing_is_made_up() -> None:
    slow = TrainSummary(**{name: getattr(SAID, name) for name in SAID.__slots__} | {"load_s": 5.0})
    assert completion(SAID, slow).metrics == {"start_up_time_s": 2.0, "load_time_s": 5.0}
    unknown = TrainSummary(
        **{name: getattr(SAID, name) for name in SAID.__slots__} | {"start_up_s": None}
    )
    found = completion(SAID, unknown, epoch_samples=25)
    assert found.metrics["completion_time_s"] is None
    assert found.metrics["training_time_s"] == pytest.approx(3.0 + 1.0)
    assert "start_up_time_s" not in found.metrics


def test_an_epoch_of_packed_samples_is_its_sets_and_lasts_as_its_samples_do() -> None:
    """10 samples in steps of 4, 4 and 2; the second epoch is steps 3 to 5. Four measured steps took
    14 samples."""
    packed = {
        "data": {"samples": 10, "mean_length": 8},
        "packing": {"max_batch_len": 32, "effective_batch_size": 4},
        "batch_per_rank": 2,
        "accumulation": 1,
    }
    said = TrainSummary(
        **{name: getattr(SAID, name) for name in SAID.__slots__} | {"epoch_samples": 10}
    )
    found = completion(said, said, **packed, epochs=100).metrics
    assert (found["epoch_time_s"], found["epoch_measured_ratio"]) == (3.0, 1.0)
    assert found["training_time_s"] == pytest.approx(3.0 + 4.0 + 294 * (4 / 14 * 10 / 3))


def test_samples_that_are_left_out_take_no_time() -> None:
    """30 samples in 8 steps of 4, of which 27 are short enough: 8 steps are 27 samples long."""
    packed = {
        "data": {"samples": 30, "mean_length": 8},
        "packing": {"max_batch_len": 16, "effective_batch_size": 4},
        "batch_per_rank": 2,
        "accumulation": 1,
    }
    said = replace(SAID, epoch_samples=30, taken_samples=27)
    found = completion(said, said, **packed).metrics
    assert found["epoch_measured_ratio"] == 0
    assert found["epoch_time_s"] == pytest.approx(27 * 4 / 14)
    assert found["training_time_s"] == pytest.approx(3.0 + 4.0 + 2 * (27 * 4 / 14 / 8))
