"""What do a few measured steps say of this system? Factors with priors, moved by robust MAP.

A factor multiplies one term (kernels, launches, the rate out of a node) of all cases that share
what it belongs to. A row moves only factors that decide its step time, so a network-bound row says
nothing of kernels; a factor that no row decides stays with its prior and is reported as unknown.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from broadgauge.catalog.frameworks import framework_named
from broadgauge.predict.calibration.slopes import Slopes
from broadgauge.predict.case import RDMA_TRANSPORTS, TrainingCase
from broadgauge.predict.costs.compute import compute_costs
from broadgauge.predict.costs.groups import group_of
from broadgauge.predict.costs.link_rates import node_rate
from broadgauge.predict.facts.arrays import Times
from broadgauge.predict.facts.columns import columns_of
from broadgauge.predict.facts.knowledge import Factor, FactorKey, Knowledge, path_of
from broadgauge.predict.facts.similar_kernels import (
    KERNEL_LOG_SD,
    Miss,
    covariances,
    misses_of,
    same_kernels,
    with_precision,
)
from broadgauge.predict.fitting.robust import FittedParameters, Prior, Twins, Vector, estimate
from broadgauge.predict.intervals.uncertainty import kernels_log_sd
from broadgauge.predict.timeline.evaluation import evaluate

PRIOR_LOG_SD = {
    "attention": 0.2,
    "memory": 0.25,
    "head": 0.3,
    "once": 0.35,
    "launch": 0.5,
}
"""Of a GPU with a framework, beside all of its kernels (which spread as intervals say): attention,
what memory bounds, head and loss, what a step costs once; the host's launches. Source: what is left
after one factor per source, GPU and dtype on published tables; the spread of eager launch times
between hosts."""
LINK_LOG_SD = 0.5
"""Of the links inside a node: PCIe without peer access carries a half or a third."""
RDMA_LOG_SD = 0.6
SOCKET_LOG_SD = math.log(3) / 1.28
"""A factor of 3 either way in eight of ten cases."""
ACROSS_LOG_SD = 0.15
"""Of kernels on several nodes over those on one: the slowest of them counts, so never below 1."""
BOUND_LOG = math.log(4)
SCALE = 0.06
"""Repeated configurations spread by ×1.06 (median), which is √2 × 0.67 of this; what else no factor
explains is similar_kernels.py's."""
FREEDOM = 4.0
FIRST_SCALE = 0.6
"""Where the estimate begins, so that rows far from the prior are heard before they are outliers."""
ITERATIONS = 12
DECIDING_SHARE = 0.1
"""Of a step must change with a term before its row may move the term's factor."""
IDENTIFIED_SHARE = 0.75
"""A factor is identified where its spread fell below this share of the prior's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A step that was measured."""

    case: TrainingCase
    step_time_s: float


def fit(observations: Sequence[Observation], knowledge: Knowledge) -> Knowledge:
    """The same knowledge with factors for what these rows belong to."""
    if not observations:
        return knowledge
    cases = [observation.case for observation in observations]
    measured_s = np.array([observation.step_time_s for observation in observations])
    keys = keys_of(cases)
    spreads = np.array([prior_log_sd(key, cases, knowledge) for key in keys])
    zero = np.zeros(len(keys))
    low = np.array([0.0 if key[0] == "across" else -BOUND_LOG for key in keys])

    slopes = Slopes(cases, keys, [factor_keys(case) for case in cases], knowledge)

    def linear(x: Vector) -> tuple[Vector, Vector]:
        log_s, changes = slopes.at(x)
        return log_s - np.log(measured_s), changes

    alike = covariances(cases, cases)

    def shared(changes: Vector) -> Vector:
        of_kernels = kernel_slopes(changes, keys)
        return np.asarray(alike * np.outer(of_kernels, of_kernels))

    found = estimate(
        linear,
        Prior(mean=zero, sd=spreads, low=low, high=zero + BOUND_LOG),
        scale=SCALE,
        freedom=FREEDOM,
        mask=deciding,
        first_scale=FIRST_SCALE,
        iterations=ITERATIONS,
        shared=shared,
        twins=Twins(
            same=same_kernels(cases),
            shares=lambda changes: np.clip(kernel_slopes(changes, keys), 0.0, 1.0),
        ),
    )
    kept = deciding(linear(found.mean)[1])
    left = shares_left(kept, found.sd, spreads, keys)
    factors = {
        key: Factor(
            value_ratio=math.exp(found.mean[index]),
            log_sd=float(found.sd[index]),
            is_identified=bool(left[index] < IDENTIFIED_SHARE),
        )
        for index, key in enumerate(keys)
    }
    known = knowledge.with_factors({**_of_measured_rates(cases, factors, knowledge), **factors})
    return known.with_misses(_misses(cases, found, kernel_slopes(kept, keys), keys, spreads))


def _misses(
    cases: Sequence[TrainingCase],
    found: FittedParameters,
    slopes: Vector,
    keys: Sequence[FactorKey],
    spreads: Vector,
) -> tuple[Miss, ...]:
    """What each row says of kernels like its own, and how sure that is."""
    system = {key: float(sd) for key, sd in zip(keys, spreads, strict=True) if key[0] == "compute"}
    sds = [next(system[key] for key in factor_keys(case) if key in system) for case in cases]
    misses = misses_of(cases, (-found.left * slopes).tolist(), found.own_variance.tolist())
    return with_precision(
        cases, misses, slopes=slopes, system_variances=np.square(sds), noise=found.noise
    )


def shares_left(slopes: Vector, sd: Vector, spreads: Vector, keys: Sequence[FactorKey]) -> Vector:
    """Of what was unknown of each factor: which part still is?

    Of kernels that counts with what those of their way and sizes have in common: a step says much
    of kernels like its own, of which part is their system's it can't tell.
    """
    of_kernels = np.array([key[0] == "compute" for key in keys])
    known = np.abs(slopes).max(axis=0) * np.hypot(spreads, KERNEL_LOG_SD)
    return np.where(of_kernels, SCALE / np.hypot(SCALE, known), sd / spreads)


def kernel_slopes(slopes: Vector, keys: Sequence[FactorKey]) -> Vector:
    """Which part of each step are kernels? What their factor changes."""
    return np.asarray(slopes[:, [key[0] == "compute" for key in keys]].sum(axis=1))


def _of_measured_rates(
    cases: Sequence[TrainingCase], factors: Mapping[FactorKey, Factor], knowledge: Knowledge
) -> dict[FactorKey, Factor]:
    """A rate that came with a step is also that of the same network where nobody says its rate.

    Of several the median; steps without a rate say more, so that `factors` has them.
    """
    rates: dict[FactorKey, list[float]] = {}
    spreads: dict[FactorKey, float] = {}
    for case in cases:
        measured = factors.get(("node_rate", *path_of(case)))
        rate_gbyte_per_s = case.fabric.measured_node_gbyte_per_s
        if measured is None or rate_gbyte_per_s is None:
            continue
        silent = replace(case, fabric=replace(case.fabric, measured_node_gbyte_per_s=None))
        columns = columns_of([silent], replace(knowledge, factors={}))
        usual = float(node_rate(group_of("data", columns), columns)[0])
        key = ("node_rate", *path_of(silent))
        rates.setdefault(key, []).append(rate_gbyte_per_s * 1e9 * measured.value_ratio / usual)
        spreads[key] = measured.log_sd
    return {
        key: Factor(value_ratio=median(found), log_sd=spreads[key], is_identified=True)
        for key, found in rates.items()
    }


def step_s(cases: Sequence[TrainingCase], knowledge: Knowledge) -> Times:
    """Step times alone."""
    columns = columns_of(cases, knowledge)
    return evaluate(columns, compute_costs(columns, knowledge)).step_s


def factor_keys(case: TrainingCase) -> list[FactorKey]:
    """Which factors may change this case's step?"""
    system = (case.gpu_entry.name, framework_named(case.framework).name)
    keys: list[FactorKey] = [(kind, *system) for kind in ("compute", *PRIOR_LOG_SD)]
    if case.gpus_per_node > 1:
        keys.append(("link_rate", *system))
    if case.nodes > 1:
        keys.append(("across", *path_of(case)[:3]))
    if case.nodes > 1 and not case.fabric.curves:
        keys.append(("node_rate", *path_of(case)))
    return keys


def keys_of(cases: Sequence[TrainingCase]) -> list[FactorKey]:
    """Of all of them, each once."""
    return list(dict.fromkeys(key for case in cases for key in factor_keys(case)))


def prior_log_sd(key: FactorKey, cases: Sequence[TrainingCase], knowledge: Knowledge) -> float:
    """How far is the factor's logarithm from 0 where nothing is measured?

    Of kernels as far as those of sources that constants had not seen: what a prediction's interval
    says before a measurement is what the measurement is weighed against.
    """
    if key[0] == "link_rate":
        return LINK_LOG_SD
    if key[0] == "across":
        return ACROSS_LOG_SD
    if key[0] in PRIOR_LOG_SD:
        return PRIOR_LOG_SD[key[0]]
    mine = [case for case in cases if key in factor_keys(case)]
    if key[0] == "compute":
        return float(kernels_log_sd(columns_of(mine, knowledge), knowledge).max())
    case = mine[0]
    return RDMA_LOG_SD if case.fabric.transport in RDMA_TRANSPORTS else SOCKET_LOG_SD


def deciding(slopes: Vector) -> Vector:
    """Clears what does not decide a row: neither its largest term nor a large one."""
    sizes = np.abs(slopes)
    largest = sizes == sizes.max(axis=1, keepdims=True)
    kept: Vector = np.where(largest | (sizes >= DECIDING_SHARE), slopes, 0.0)
    return kept
