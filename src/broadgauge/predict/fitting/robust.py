"""Which parameters do a few noisy figures and a prior agree on? A robust MAP of logarithms.

Gauss-Newton on residuals whose errors are Student-t: an outlier pulls less the farther it is off.
Source: Lange, Little, Taylor 1989 (JASA 84), equation 1, iteratively reweighted.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]
WIDTH = 1e-3
"""Of a logarithm: how far a parameter is moved for its slope."""
STEP_LIMIT = 0.5
"""Of a logarithm in one iteration: residuals are far from linear beyond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """Of parameters, as logarithms."""

    mean: Vector
    sd: Vector
    low: Vector
    high: Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedParameters:
    """Parameters as logarithms, with what stays unknown of each."""

    mean: Vector
    sd: Vector
    left: Vector
    """What they leave of each row, over its variance."""
    own_variance: Vector
    """Of what is each row's configuration's, beyond `scale`: 0 but for outliers. Empty without
    twins."""
    noise: Vector
    """Variance of each row that is its own and nobody else's: larger for outliers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Twins:
    """Rows of one configuration may be outliers together."""

    same: npt.NDArray[np.float64]
    """1 for two rows of one configuration: `float64[rows, rows]`."""
    shares: Callable[[npt.NDArray[np.float64]], Vector]
    """Which part of each row's error its configuration answers for, from the slopes: 0 to 1."""


def estimate(
    linear: Callable[[Vector], tuple[Vector, Vector]],
    prior: Prior,
    *,
    scale: float,
    freedom: float,
    weights: Vector | float = 1.0,
    mask: Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]] | None = None,
    start: Vector | None = None,
    iterations: int = 8,
    first_scale: float = 0.0,
    shared: Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]] | None = None,
    twins: Twins | None = None,
) -> FittedParameters:
    """`linear` gives logarithms of predicted over measured, and their slopes by each parameter.

    `scale` is the spread of these residuals without outliers. It is halved down from `first_scale`:
    rows that the prior is far from are not taken for outliers before the parameters had a chance
    (graduated non-convexity, Blake and Zisserman 1987). `mask` may clear what a row must not say of
    a parameter, in `float64[rows, parameters]`. `shared` gives the covariance of what rows have in
    common beside the parameters, from those slopes; a row is an outlier by what is its own. What
    all `twins` of a row agree on is their configuration's.
    """
    x = prior.mean.copy() if start is None else start.copy()
    precision = np.diag(1 / prior.sd**2)
    left: Vector | None = None
    excess = np.zeros(0)
    for iteration in range(iterations):
        width = max(scale, first_scale / 2**iteration)
        errors, slopes = linear(x)
        slopes = slopes if mask is None else mask(slopes)
        common = None if shared is None else shared(slopes)
        own = errors if common is None or left is None else errors - common @ left
        pull = weights * (freedom + 1) / (freedom * width**2 + own**2)
        if twins is not None:
            excess, theirs = _configurations(own, 1 / pull - width**2, slopes, twins)
            pull = 1 / (1 / pull - np.diag(theirs))
            common = theirs if common is None else common + theirs
        normal = slopes.T @ _weighted(slopes, pull, common) + precision
        left = _weighted(errors, pull, common)
        gradient = slopes.T @ left + (x - prior.mean) / prior.sd**2
        moved = _moved(x, normal, gradient, prior)
        change = float(np.max(np.abs(moved - x)))
        x = moved
        if change < 1e-4 and width == scale:
            break
    assert left is not None
    sd = np.sqrt(np.diag(np.linalg.inv(normal)))
    return FittedParameters(mean=x, sd=sd, left=left, own_variance=excess, noise=1 / pull)


def _configurations(
    own: Vector, beyond: Vector, slopes: Vector, twins: Twins
) -> tuple[Vector, npt.NDArray[np.float64]]:
    """What of the rows' variances beyond `scale` is their configurations', and its covariance.

    The least among a row's twins, where all err to the same side: one disturbed row says nothing of
    the others, and one that is as predicted says that it was the row's.
    """
    sided = np.abs(twins.same @ np.sign(own)) == twins.same.sum(axis=1)
    least = np.where(twins.same > 0, np.maximum(beyond, 0.0), np.inf).min(axis=1)
    excess = np.where(sided, least, 0.0)
    shares = twins.shares(slopes)
    return excess, twins.same * excess * np.outer(shares, shares)


def _moved(x: Vector, normal: Vector, gradient: Vector, prior: Prior) -> Vector:
    """One step of those parameters that no bound holds; what a bound holds moves no other."""
    held = ((x <= prior.low) & (gradient > 0)) | ((x >= prior.high) & (gradient < 0))
    free = np.flatnonzero(~held)
    step = np.zeros_like(x)
    step[free] = np.linalg.solve(normal[np.ix_(free, free)], gradient[free])
    step = np.clip(step, -STEP_LIMIT, STEP_LIMIT)
    return np.asarray(np.clip(x - step, prior.low, prior.high))


def _weighted(values: Vector, pull: Vector, common: Vector | None) -> Vector:
    """Over the rows' variances, or over their covariance where they have something in common."""
    if common is None:
        return np.asarray((values.T * pull).T)
    return np.asarray(np.linalg.solve(common + np.diag(1 / pull), values), dtype=np.float64)


def by_differences(
    residuals: Callable[[Vector], Vector],
) -> Callable[[Vector], tuple[Vector, Vector]]:
    """Residuals and their slopes, one evaluation for each parameter."""

    def linear(x: Vector) -> tuple[Vector, Vector]:
        errors = residuals(x)
        columns = []
        for index in range(len(x)):
            moved = x.copy()
            moved[index] += WIDTH
            columns.append((residuals(moved) - errors) / WIDTH)
        return errors, np.stack(columns, axis=1)

    return linear
