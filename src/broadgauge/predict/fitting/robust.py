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
class Estimate:
    """Parameters as logarithms, with what stays unknown of each."""

    mean: Vector
    sd: Vector
    left: Vector
    """What they leave of each row, over its variance."""


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
) -> Estimate:
    """`linear` gives logarithms of predicted over measured, and their slopes by each parameter.

    `scale` is the spread of these residuals without outliers. It is halved down from `first_scale`:
    rows that the prior is far from are not taken for outliers before the parameters had a chance
    (graduated non-convexity, Blake and Zisserman 1987). `mask` may clear what a row must not say of
    a parameter, in `float64[rows, parameters]`. `shared` gives the covariance of what rows have in
    common beside the parameters, from those slopes; a row is an outlier by what is its own.
    """
    x = prior.mean.copy() if start is None else start.copy()
    precision = np.diag(1 / prior.sd**2)
    left: Vector | None = None
    for iteration in range(iterations):
        width = max(scale, first_scale / 2**iteration)
        errors, slopes = linear(x)
        slopes = slopes if mask is None else mask(slopes)
        common = None if shared is None else shared(slopes)
        own = errors if common is None or left is None else errors - common @ left
        pull = weights * (freedom + 1) / (freedom * width**2 + own**2)
        normal = slopes.T @ _weighted(slopes, pull, common) + precision
        left = _weighted(errors, pull, common)
        gradient = slopes.T @ left + (x - prior.mean) / prior.sd**2
        step = np.clip(np.linalg.solve(normal, gradient), -STEP_LIMIT, STEP_LIMIT)
        moved = np.clip(x - step, prior.low, prior.high)
        change = float(np.max(np.abs(moved - x)))
        x = moved
        if change < 1e-4 and width == scale:
            break
    assert left is not None
    return Estimate(mean=x, sd=np.sqrt(np.diag(np.linalg.inv(normal))), left=left)


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
