"""How long is a step at each rung of a ladder, and how far did launches scatter?

The rungs of one block ran next to each other, so what a whole block was slower by is common to
them: log time = level of the rung + effect of the block + scatter. A launch that another program
disturbed counts less, by how far it lies off.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from broadgauge.results.student import student_quantile

Floats = NDArray[np.float64]

HUBER = 1.5
"""Scatter beyond so many standard deviations counts less. Source: Huber, Robust Statistics (1981),
section 4.5: 1.5 costs about 4 % efficiency where nothing is disturbed."""
FEWEST_FOR_INTERVAL = 3
_MAD = 1.4826
"""Median absolute deviation to standard deviation, of a normal distribution."""
_ROUNDS = 60
_LEAST_SCATTER_RATIO = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """What the launches say of each rung, in logarithms of seconds."""

    log_level: Floats
    """`float64[rungs]`: mean over blocks."""
    variance: Floats
    """`float64[rungs]`: of the level, by scatter within blocks; 0 with one block."""
    influence: Floats
    """`float64[rungs, blocks]`: how far each block alone would move the level."""
    dof: int
    """Of `variance`."""

    @property
    def num_blocks(self) -> int:
        """Blocks with a measurement."""
        return int(self.influence.shape[1])

    def moved(self, slopes: Floats) -> tuple[float, int] | None:
        """How far does chance between launches move a figure that follows the levels with these
        slopes? Its variance and degrees of freedom; None with fewer than 3 launches."""
        if self.num_blocks < FEWEST_FOR_INTERVAL:
            return None
        by_block = slopes @ self.influence
        dof = self.num_blocks - 1
        return float(((by_block - by_block.mean()) ** 2).sum()) / dof / self.num_blocks, dof

    def interval(self, rung: int) -> tuple[float, float] | None:
        """95 % interval of one rung's level, as a ratio to it."""
        moved = self.moved(np.eye(len(self.log_level))[rung])
        if moved is None:
            return None
        half = student_quantile(0.975, moved[1]) * math.sqrt(moved[0])
        return math.exp(-half), math.exp(min(half, 700.0))


def levels_of(step_s: Sequence[Sequence[float | None]]) -> Levels:
    """The level of each rung; rows are rungs, columns blocks, None where nothing was measured.

    A two-way fit by iterated weights (Huber, section 7.8). Each rung has a measurement.
    """
    logs = np.array(
        [[math.nan if s is None else math.log(s) for s in row] for row in step_s], dtype=np.float64
    )
    logs = logs[:, np.isfinite(logs).any(axis=0)]
    is_there = np.isfinite(logs)
    values = np.where(is_there, logs, 0.0)
    weights = is_there.astype(np.float64)
    rungs, blocks = logs.shape
    dof = int(is_there.sum()) - rungs - blocks + 1
    level, effect = _two_way(values, weights)
    for _ in range(_ROUNDS if blocks >= FEWEST_FOR_INTERVAL and dof > 0 else 0):
        left = np.abs(np.where(is_there, values - level[:, None] - effect, 0.0))
        spread = _MAD * float(np.median(left[is_there])) * math.sqrt(is_there.sum() / dof)
        spread = max(spread, _LEAST_SCATTER_RATIO)
        weights = is_there * np.minimum(1.0, HUBER * spread / np.maximum(left, spread))
        before = level
        level, effect = _two_way(values, weights)
        if float(np.abs(level - before).max()) < 1e-13:
            break
    left = np.where(is_there, values - level[:, None] - effect, 0.0)
    scatter = float((weights * left**2).sum()) / dof if dof > 0 else 0.0
    of_rung = weights.sum(axis=1)
    wider = _widened(weights[is_there], rungs + blocks - 1)
    return Levels(
        log_level=level,
        variance=wider**2 * scatter / of_rung,
        influence=wider * weights * (values - level[:, None]) * (blocks / of_rung)[:, None],
        dof=max(dof, 0),
    )


def _widened(weights: Floats, num_parameters: int) -> float:
    """How many times is the error what weighted squares say, since the weights were fitted, too?

    Source: Huber, section 7.6: K / mean of psi', K = 1 + p/n (1 - m) / m, where m is the share of
    points in full; and their weights' mean takes what those squares say back to squares of psi.
    """
    in_full = max(float((weights >= 1.0).mean()), 0.5)
    correction = 1 + num_parameters / len(weights) * (1 - in_full) / in_full
    return correction * float(weights.mean()) / in_full


def _two_way(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Levels of rows and effects of columns, whose mean is 0, by weighted least squares.

    A column's effect is the weighted mean of what its rows leave, which takes the columns out of
    the equations: as many are solved as there are rows, however many the columns.
    Source: the Frisch-Waugh-Lovell theorem.
    """
    of_column = weights.sum(axis=0)
    in_column = weights / of_column
    weighted = weights * values
    equations = np.diag(weights.sum(axis=1)) - in_column @ weights.T
    right = weighted.sum(axis=1) - in_column @ weighted.sum(axis=0)
    level, _, rank, _ = np.linalg.lstsq(equations, right, rcond=None)
    if rank < len(values) - 1:
        return _two_way_apart(values, weights)
    effect = (weights * (values - level[:, None])).sum(axis=0) / of_column
    shift = float(effect.mean())
    return level + shift, effect - shift


def _two_way_apart(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """The same where some rows share no column with the others: the least of all solutions."""
    rows, columns = values.shape
    design = np.zeros((rows * columns, rows + columns))
    design[np.arange(rows * columns), np.repeat(np.arange(rows), columns)] = 1.0
    design[np.arange(rows * columns), rows + np.tile(np.arange(columns), rows)] = 1.0
    root = np.sqrt(weights).reshape(-1)
    found = np.linalg.lstsq(design * root[:, None], values.reshape(-1) * root, rcond=None)[0]
    shift = float(found[rows:].mean())
    return found[:rows] + shift, found[rows:] - shift
