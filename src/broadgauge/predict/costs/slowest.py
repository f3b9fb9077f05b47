"""How much slower is the slowest of many that must all be done?"""

import functools
from statistics import NormalDist

import numpy as np

from broadgauge.predict.facts.arrays import Times

RANK_LOG_SD = 0.015
"""Spread of the kernel times of GPUs of one type in one cluster: 8 % from whisker to whisker (5.4
standard deviations) on average over five clusters. Source: Sinha et al. 2022 (SC22, arXiv
2208.11035), abstract."""


@functools.cache
def largest_deviate(number: int) -> float:
    """The expected largest of so many standard normal deviates. Source: Blom 1958."""
    return NormalDist().inv_cdf((number - 0.375) / (number + 0.25))


def slowest_rank_ratio(ranks: Times) -> Times:
    """Kernel times of the slowest of so many GPUs, over those of a usual one; all wait for it."""
    numbers, index = np.unique(ranks, return_inverse=True)
    largest = np.array([largest_deviate(max(1, int(number))) for number in numbers])
    return np.asarray(np.exp(RANK_LOG_SD * largest)[index.ravel()])
