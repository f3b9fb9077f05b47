"""Kernels of like sizes miss alike: what no factor explains of them, and how far that reaches.

A factor is one number for all kernels of a system; tiles, waves and caches make some sizes faster
and others slower than it says. That part is a Gaussian process over the sizes of a rank's kernels,
beside the factors. So a few measured steps at the ends of a table neither move a factor by what is
theirs alone, nor are they forgotten where their neighbours are predicted.
A way of training (sharded, with adapters, recomputing) brings kernels and hooks of its own: all of
one way miss alike, whatever their sizes, beside that.
What is far beyond both is more often so of a configuration than of one measurement: exactly those
kernels have it again, on however many nodes, and their neighbours don't.
Source: Kennedy and O'Hagan 2001 (Journal of the Royal Statistical Society B 63(3)), section 4.1,
model inadequacy; Rasmussen and Williams 2006, section 2.2 (prediction) and 4.2 (the kernel).
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from broadgauge.catalog.frameworks import framework_named
from broadgauge.predict.case import TrainingCase
from broadgauge.predict.facts.zero_stage import zero_stage

Matrix = npt.NDArray[np.float64]
Pairs = npt.NDArray[np.bool_]
MISS_LOG_SD = 0.15
"""Of kernels of one size beside their system's factor. Source: references/prediction.md, the third
hard question: a pattern of ±20 % by hidden size, micro-batch and tensor parallelism remains, read
as eight of ten."""
WAY_LOG_SD = 0.15
"""Of what all kernels of one way of training miss alike. As much as sizes make: nobody has measured
it apart. What half and twice as much would give: docs/decisions/0009."""
KERNEL_LOG_SD = math.hypot(MISS_LOG_SD, WAY_LOG_SD)
"""Both together: of one kernel beside its system's factor."""
REACH_LOG = 1.0
"""How far apart are sizes that have little in common? A factor of e, in any one of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """What a measured step says of kernels like its own."""

    kind: tuple[str, ...]
    sizes_log: tuple[float, ...]
    way: tuple[object, ...]
    others: tuple[object, ...]
    """What else kernels of these sizes must have in common to be the same ones."""
    weight: float
    """Positive: measured slower than the factors say."""
    own_variance: float
    """Of what exactly these kernels have in common beyond those of like sizes."""
    slope: float = 0.0
    """Which part of the measured step were kernels?"""
    system_variance: float = 0.0
    """Of the factor of all kernels of its system, before anything was measured."""
    precision_row: tuple[float, ...] = ()
    """Of the inverse of what all misses of its kind vary and covary, in their order."""


def covariances(cases: Sequence[TrainingCase], others: Sequence[TrainingCase]) -> Matrix:
    """Of the logarithms of what kernels of like sizes miss: `float64[cases, others]`."""
    return _covariances(cases, [_miss(other, 0.0, 0.0) for other in others])


def same_kernels(cases: Sequence[TrainingCase]) -> Matrix:
    """1 for two cases that run exactly the same kernels: `float64[cases, cases]`."""
    compared = _compared(cases, [_miss(case, 0.0, 0.0) for case in cases])
    return compared.is_same.astype(np.float64)


def misses_of(
    cases: Sequence[TrainingCase], weights: Sequence[float], own_variances: Sequence[float]
) -> tuple[Miss, ...]:
    """To be kept, for the predictions of others."""
    found = zip(cases, weights, own_variances, strict=True)
    return tuple(_miss(case, weight, variance) for case, weight, variance in found)


def with_precision(
    cases: Sequence[TrainingCase],
    misses: Sequence[Miss],
    *,
    slopes: Matrix,
    system_variances: Matrix,
    noise: Matrix,
) -> tuple[Miss, ...]:
    """The same, with how much they tell. `slopes`, `system_variances`, `noise`: one a miss."""
    known = [
        replace(miss, slope=slope, system_variance=variance)
        for miss, slope, variance in zip(misses, slopes.tolist(), system_variances, strict=True)
    ]
    told = _told(cases, known) * slopes[:, None] + np.diag(noise)
    result: list[Miss] = list(known)
    for kind in {miss.kind for miss in known}:
        mine = [index for index, miss in enumerate(known) if miss.kind == kind]
        rows = np.linalg.inv(told[np.ix_(mine, mine)])
        for index, row in zip(mine, rows.tolist(), strict=True):
            result[index] = replace(known[index], precision_row=tuple(row))
    return tuple(result)


def left_ratio(cases: Sequence[TrainingCase], misses: Sequence[Miss]) -> Matrix:
    """What is still unknown of each case's kernels, over what was: standard deviations.

    NaN where no miss is of its kind. Source: Rasmussen and Williams 2006, equation 2.26.
    """
    left = np.full(len(cases), np.nan)
    known_kinds = {miss.kind for miss in misses if miss.precision_row}
    kinds = [_kind(case) for case in cases] if known_kinds else []
    for kind in known_kinds:
        mine = [index for index, each in enumerate(kinds) if each == kind]
        known = [miss for miss in misses if miss.kind == kind]
        if not mine:
            continue
        told = _told([cases[index] for index in mine], known)
        precision = np.array([miss.precision_row for miss in known])
        unknown = known[0].system_variance + KERNEL_LOG_SD**2
        explained = np.sum((told @ precision) * told, axis=1)
        left[mine] = np.sqrt(np.clip(1 - explained / unknown, 0.0, 1.0))
    return left


def is_way_measured(cases: Sequence[TrainingCase], misses: Sequence[Miss]) -> Pairs:
    """Was a step of each case's system and way of training measured, whatever its sizes?"""
    if not misses:
        return np.zeros(len(cases), dtype=np.bool_)
    compared = _compared(cases, misses)
    return np.asarray((compared.is_kind & compared.is_way).any(axis=1))


def _told(cases: Sequence[TrainingCase], misses: Sequence[Miss]) -> Matrix:
    """Covariances of each case's kernels with each measured step, their system's part included."""
    system = [miss.system_variance for miss in misses]
    return _covariances(cases, misses, system) * [miss.slope for miss in misses]


def shape_slowness(cases: Sequence[TrainingCase], misses: Sequence[Miss]) -> Matrix:
    """By what kernels of each case are slower than their factors say: 1 where nothing is known."""
    if not misses:
        return np.ones(len(cases))
    weights = np.array([miss.weight for miss in misses])
    return np.asarray(np.exp(_covariances(cases, misses) @ weights))


def _miss(case: TrainingCase, weight: float, own_variance: float) -> Miss:
    return Miss(
        kind=_kind(case),
        sizes_log=_sizes_log(case),
        way=_way(case),
        others=_others(case),
        weight=weight,
        own_variance=own_variance,
    )


def _covariances(
    cases: Sequence[TrainingCase], misses: Sequence[Miss], of_kind: Sequence[float] | float = 0.0
) -> Matrix:
    """`of_kind`: what all kernels of a miss's kind share with it beside sizes and ways."""
    compared = _compared(cases, misses)
    by_size = MISS_LOG_SD**2 * np.exp(-compared.apart / 2)
    by_way = np.where(compared.is_way, WAY_LOG_SD**2, 0.0)
    own = np.where(compared.is_same, [miss.own_variance for miss in misses], 0.0)
    return np.where(compared.is_kind, by_size + by_way + own + of_kind, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    """Of each case with each miss: `[cases, misses]`."""

    apart: Matrix
    """Squared distance of their sizes."""
    is_kind: Pairs
    is_way: Pairs
    is_same: Pairs
    """They are the same kernels."""


def _compared(cases: Sequence[TrainingCase], misses: Sequence[Miss]) -> _Compared:
    sizes = np.array([_sizes_log(case) for case in cases])
    others = np.array([miss.sizes_log for miss in misses])
    apart = np.sum(((sizes[:, None, :] - others) / REACH_LOG) ** 2, axis=2)
    is_kind = _equal([_kind(case) for case in cases], [miss.kind for miss in misses])
    is_alike = _equal([_others(case) for case in cases], [miss.others for miss in misses])
    return _Compared(
        apart=apart,
        is_kind=is_kind,
        is_way=_equal([_way(case) for case in cases], [miss.way for miss in misses]),
        is_same=is_kind & is_alike & (apart == 0),
    )


def _equal(mine: Sequence[Hashable], theirs: Sequence[Hashable]) -> Pairs:
    numbers = {each: index for index, each in enumerate(theirs)}
    rows = np.array([numbers.get(each, -1) for each in mine])
    return np.asarray(rows[:, None] == np.array([numbers[each] for each in theirs]))


def _kind(case: TrainingCase) -> tuple[str, ...]:
    """Kernels of another GPU, framework or arithmetic say nothing of these."""
    return (case.gpu_entry.name, framework_named(case.framework).name, case.precision)


def _way(case: TrainingCase) -> tuple[object, ...]:
    """What brings kernels of its own to a framework: what is split, adapted, moved, recomputed."""
    split = (case.strategy, _split_stage(case), case.tensor_parallel > 1)
    more = (case.pipeline_parallel > 1, case.context_parallel > 1, case.model.is_mixture)
    return (*split, *more, case.cpu_offload, *_kernels(case))


def _split_stage(case: TrainingCase) -> int:
    """ZeRO's, which for FSDP is 3 whether that is said or not; a split optimizer alone (stage 1)
    brings nothing to a layer."""
    if case.zero_stage is None and case.strategy in ("fsdp", "hsdp"):
        return 3
    stage = zero_stage(case)
    return 0 if stage == 1 else stage


def _kernels(case: TrainingCase) -> tuple[object, ...]:
    return (case.lora, case.quantized_base, case.compiled, case.flash_attention, case.recompute)


def _others(case: TrainingCase) -> tuple[object, ...]:
    model = case.model
    heads = (model.heads, model.kv_heads, model.head_dim)
    shapes = (model.ffn_hidden, model.gated_mlp, model.vocabulary, model.num_experts)
    return (heads, shapes, _kernels(case))


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
