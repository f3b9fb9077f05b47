"""Do few readings reach nearly to the last step, however many there are?"""

import pytest

from broadgauge.probes.step_counts import StepCounts


@pytest.mark.parametrize("step_s", [0.01, 0.3, 5.0])
@pytest.mark.parametrize("num_steps", [20, 300, 20_000])
def test_the_first_and_nearly_the_last_step_are_read(step_s: float, num_steps: int) -> None:
    counts = StepCounts()
    read_s = [n * step_s for n in range(1, num_steps + 1) if counts.is_due(n, n * step_s)]
    assert read_s[0] == step_s
    whole_s = num_steps * step_s
    if whole_s > 10:
        assert read_s[-1] >= 0.88 * whole_s
    assert len(read_s) < 120


def test_nothing_is_read_after_the_last_sample() -> None:
    """25 steps of 8 ms, and then the script saves its model: the link is idle, and was not."""
    counts = StepCounts()
    came = [min(25, round(n * 0.1 / 0.008)) for n in range(1, 100)]
    read = [n for n, samples in enumerate(came) if counts.is_due(samples, n * 0.1)]
    assert read == [0]


def test_nothing_is_read_while_no_sample_comes() -> None:
    counts = StepCounts()
    assert counts.is_due(3, 10.0)
    assert not any(counts.is_due(3, 10.0 + n) for n in range(100))
