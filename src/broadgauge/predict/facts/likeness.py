"""Kernels of like sizes miss alike: what no factor explains of them, and how far that reaches.

A factor is one number for all kernels of a system; tiles, waves and caches make some sizes faster
and others slower than it says. That part is a Gaussian process over the sizes of a rank's kernels,
beside the factors. So a few measured steps at the ends of a table neither move a factor by what is
theirs alone, nor are they forgotten where their neighbours are predicted.
Source: Kennedy and O'Hagan 2001 (Journal of the Royal Statistical Society B 63(3)), section 4.1,
model inadequacy; Rasmussen and Williams 2006, section 2.2 (prediction) and 4.2 (the kernel).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from broadgauge.catalog.frameworks import framework_named
from broadgauge.predict.case import TrainingCase

Matrix = npt.NDArray[np.float64]
MISS_LOG_SD = 0.15
"""Of kernels of one size beside their system's factor. Source: references/prediction.md, the third
hard question: a pattern of ±20 % by hidden size, micro-batch and tensor parallelism remains, read
as eight of ten."""
REACH_LOG = 1.0
"""How far apart are sizes that have little in common? A factor of e, in any one of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """What a measured step says of kernels like its own."""

    kind: tuple[str, ...]
    sizes_log: tuple[float, ...]
    weight: float
    """Positive: measured slower than the factors say."""


def covariances(cases: Sequence[TrainingCase], others: Sequence[TrainingCase]) -> Matrix:
    """Of the logarithms of their kernels' misses: `float64[cases, others]`."""
    misses = [_miss(other, 0.0) for other in others]
    return _covariances(cases, misses)


def misses_of(cases: Sequence[TrainingCase], weights: Sequence[float]) -> tuple[Miss, ...]:
    """To be kept, for the predictions of others."""
    return tuple(_miss(case, weight) for case, weight in zip(cases, weights, strict=True))


def shape_slowness(cases: Sequence[TrainingCase], misses: Sequence[Miss]) -> Matrix:
    """By what kernels of each case are slower than their factors say: 1 where nothing is known."""
    if not misses:
        return np.ones(len(cases))
    weights = np.array([miss.weight for miss in misses])
    return np.asarray(np.exp(_covariances(cases, misses) @ weights))


def _miss(case: TrainingCase, weight: float) -> Miss:
    return Miss(kind=_kind(case), sizes_log=_sizes_log(case), weight=weight)


def _covariances(cases: Sequence[TrainingCase], misses: Sequence[Miss]) -> Matrix:
    sizes = np.array([_sizes_log(case) for case in cases])
    others = np.array([miss.sizes_log for miss in misses])
    apart = np.sum(((sizes[:, None, :] - others) / REACH_LOG) ** 2, axis=2)
    kinds = {kind: index for index, kind in enumerate(dict.fromkeys(miss.kind for miss in misses))}
    mine = np.array([kinds.get(_kind(case), -1) for case in cases])
    theirs = np.array([kinds[miss.kind] for miss in misses])
    return np.where(mine[:, None] == theirs, MISS_LOG_SD**2 * np.exp(-apart / 2), 0.0)


def _kind(case: TrainingCase) -> tuple[str, ...]:
    """Kernels of another GPU, framework or arithmetic say nothing of these."""
    return (case.gpu_entry.name, framework_named(case.framework).name, case.precision)


def _sizes_log(case: TrainingCase) -> tuple[float, ...]:
    """What gives a rank's kernels their sizes, and how many layers of them it runs."""
    sizes = (
        case.micro_batch * case.seq_len / case.context_parallel,
        case.seq_len,
        case.model.hidden,
        case.tensor_parallel,
        case.model.layers / case.pipeline_parallel,
    )
    return tuple(math.log(size) for size in sizes)
