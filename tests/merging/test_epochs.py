"""Is an epoch's time what its steps took, where they were measured, and their mean elsewhere?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broadgauge.merging.epochs import Epoch, MeasuredSteps, epoch_times
from broadgauge.messages.epochs import steps_per_epoch

SECONDS = st.lists(st.floats(0.01, 10), min_size=1, max_size=40)


@pytest.mark.parametrize(("num_gpus", "steps"), [(1, 2216), (2, 1108)])
def test_the_article_s_epoch(num_gpus, steps):
    """35,456 samples at 16 a GPU; e-15-5-3 took 266.83 s, e-15-4-1 498.37 s: planted as steps."""
    seconds = {1: 498.37, 2: 266.83}[num_gpus]
    epoch = Epoch(num_samples=35_456, samples_per_step=16 * num_gpus)
    assert epoch.num_steps == steps
    few = MeasuredSteps(first=3, seconds=[seconds / steps] * 12)
    times = epoch_times(few, epoch, 2)
    assert times.epoch_time_s == pytest.approx(seconds)
    assert times.completion_time_s == pytest.approx(2 * seconds)
    assert times.epoch_measured_ratio == 0


def test_a_second_epoch_that_was_measured_is_the_sum_of_its_own_steps():
    """Epochs of 4 steps, one of warm-up: steps 1 to 8 are measured, 4 to 7 are the second's."""
    steps = MeasuredSteps(first=1, seconds=[9, 9, 9, 1, 2, 3, 4, 50])
    times = epoch_times(steps, Epoch(num_samples=8, samples_per_step=2), 2)
    assert times.epoch_time_s == 1 + 2 + 3 + 4
    assert times.epoch_measured_ratio == 1
    mean_s = (27 + 10 + 50) / 8
    assert times.completion_time_s == pytest.approx(27 + 10 + mean_s)


def test_half_a_second_epoch_is_extrapolated_from_all_steps():
    steps = MeasuredSteps(first=2, seconds=[4, 4, 1, 1])  # steps 2 to 5; the second has 4 to 7
    times = epoch_times(steps, Epoch(num_samples=7, samples_per_step=2), 3)
    assert times.epoch_measured_ratio == 0.5
    assert times.epoch_time_s == 2.5 * 4
    assert times.completion_time_s == 10 + 8 * 2.5


def test_steps_of_unequal_size_count_by_sample():
    """InstructLab's: 3,840, 3,840 and 2,192 samples an epoch; a sample takes a millisecond."""
    sizes = [3840, 2192, 3840]
    steps = MeasuredSteps(first=1, seconds=[n / 1000 for n in sizes], num_samples=sizes)
    times = epoch_times(steps, Epoch(num_samples=9872, samples_per_step=3840), 1)
    assert times.epoch_time_s == pytest.approx(9.872)
    assert times.completion_time_s == pytest.approx(6.032 + 9.872 / 3)


@given(SECONDS, st.integers(0, 10), st.integers(1, 200), st.integers(1, 20), st.integers(1, 5))
def test_equal_steps_make_every_figure_a_multiple(seconds, first, samples, per_step, epochs):
    steps = MeasuredSteps(first=first, seconds=[0.25] * len(seconds))
    times = epoch_times(steps, Epoch(num_samples=samples, samples_per_step=per_step), epochs)
    num_steps = steps_per_epoch(samples, per_step)
    assert times.epoch_time_s == pytest.approx(0.25 * num_steps)
    assert times.completion_time_s == pytest.approx(0.25 * num_steps * epochs)
    assert 0 <= times.epoch_measured_ratio <= 1


@given(SECONDS, st.integers(0, 10), st.integers(1, 30))
def test_a_mean_is_between_the_fastest_and_the_slowest_step(seconds, first, samples):
    steps = MeasuredSteps(first=first, seconds=seconds)
    times = epoch_times(steps, Epoch(num_samples=samples, samples_per_step=1), 4)
    whole = ((times.epoch_time_s, samples), (times.completion_time_s, 4 * samples))
    for time_s, num_steps in whole:
        assert min(seconds) * num_steps <= time_s * 1.000001
        assert time_s <= max(seconds) * num_steps * 1.000001
