"""Is the lower quartile the platform's where bursts came, and a slower one found all the same?"""

import random
from itertools import product
from statistics import median

import pytest
from tests.one_sided import lower_quartile

WITHIN = 0.03
QUIET = [0.331 + 0.001 * (n % 5) for n in range(24)]
"""The steps of three launches."""
DISTURBED = [step + (0.04 if n < 16 else 0.0) for n, step in enumerate(QUIET)]
"""Bursts in the first two: 12 % longer steps."""


def test_two_launches_of_three_that_were_disturbed_decide_nothing() -> None:
    assert lower_quartile(DISTURBED) / lower_quartile(QUIET) == pytest.approx(1, abs=WITHIN / 3)
    assert median(DISTURBED) / median(QUIET) > 1 + WITHIN


def test_any_half_of_the_steps_may_be_disturbed_on_either_side() -> None:
    rng = random.Random(1)
    for _ in range(200):
        one, other = ([*QUIET] for _ in range(2))
        for steps in (one, other):
            for n in rng.sample(range(24), 12):
                steps[n] *= 1 + rng.random()
        assert lower_quartile(one) / lower_quartile(other) == pytest.approx(1, abs=WITHIN)


def test_a_slower_platform_is_found_disturbed_or_not() -> None:
    """By 4 %."""
    for other, slower in product((QUIET, DISTURBED), repeat=2):
        ratio = lower_quartile([1.04 * step for step in slower]) / lower_quartile(other)
        assert ratio > 1 + WITHIN
