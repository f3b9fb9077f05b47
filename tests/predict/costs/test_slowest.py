"""The slowest of many: against drawing so many, and against the spread that was published."""

from statistics import NormalDist, mean

import numpy as np
import pytest
from tests.predict.making_cases import case

from broadgauge.predict.costs.slowest import RANK_LOG_SD, largest_deviate, slowest_rank_ratio
from broadgauge.predict.predictor import predict


@pytest.mark.parametrize("number", [1, 2, 8, 64, 512])
def test_it_is_what_drawing_so_many_gives(number: int) -> None:
    draws = np.array(NormalDist().samples(400 * number, seed=3)).reshape(-1, number)

    assert largest_deviate(number) == pytest.approx(mean(draws.max(axis=1)), abs=0.12)


def test_the_spread_is_eight_percent_between_whiskers() -> None:
    """Whiskers of a normal distribution stand 2.7 standard deviations from its median."""
    quartile = NormalDist().inv_cdf(0.75)

    assert 2 * (quartile + 1.5 * 2 * quartile) * RANK_LOG_SD == pytest.approx(0.08, rel=0.02)


def test_one_gpu_waits_for_nobody_and_more_wait_longer() -> None:
    ratios = slowest_rank_ratio(np.array([1.0, 2.0, 8.0, 512.0, 16384.0]))

    assert ratios[0] == 1
    assert (np.diff(ratios) > 0).all()
    assert ratios[-1] < 1.07


def test_kernels_of_more_ranks_take_longer() -> None:
    few = case(nodes=1, data_parallel=8, global_batch=32)
    many = case(nodes=64, data_parallel=512, global_batch=2048)
    quick, slow = (each.parts.compute_s for each in predict([few, many]))

    assert 1.01 < slow / quick < 1.05
