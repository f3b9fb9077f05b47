"""Which parameters do a few noisy figures and a prior agree on? A robust MAP of logarithms.

Gauss-Newton on residuals whose errors are Student-t: an outlier pulls less the farther it is off.
Source: Lange, Little, Taylor 1989 (JASA 84), equation 1, iteratively reweighted.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]
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


def estimate(
    residuals: Callable[[Vector], Vector],
    prior: Prior,
    *,
    scale: float,
    freedom: float,
    weights: Vector | float = 1.0,
    mask: Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]] | None = None,
    start: Vector | None = None,
    iterations: int = 8,
) -> Estimate:
    """`residuals`: logarithms of predicted over measured; `scale`: their spread without outliers.

    `mask` may clear what a row must not say of a parameter, in `float64[rows, parameters]`.
    """
    x = prior.mean.copy() if start is None else start.copy()
    precision = np.diag(1 / prior.sd**2)
    for _ in range(iterations):
        errors, slopes = _linear(residuals, x)
        slopes = slopes if mask is None else mask(slopes)
        pull = weights * (freedom + 1) / (freedom * scale**2 + errors**2)
        normal = slopes.T @ (slopes * pull[:, None]) + precision
        gradient = slopes.T @ (pull * errors) + (x - prior.mean) / prior.sd**2
        step = np.clip(np.linalg.solve(normal, gradient), -STEP_LIMIT, STEP_LIMIT)
        moved = np.clip(x - step, prior.low, prior.high)
        change = float(np.max(np.abs(moved - x)))
        x = moved
        if change < 1e-4:
            break
    return Estimate(mean=x, sd=np.sqrt(np.diag(np.linalg.inv(normal))))


def _linear(residuals: Callable[[Vector], Vector], x: Vector) -> tuple[Vector, Vector]:
    """Residuals, and how each changes with each parameter."""
    errors = residuals(x)
    width = 1e-3
    columns = []
    for index in range(len(x)):
        moved = x.copy()
        moved[index] += width
        columns.append((residuals(moved) - errors) / width)
    return errors, np.stack(columns, axis=1)
