"""Which curves can't be told from the best one, and between which ends do their figures lie?

The general curve has two straight pieces over 1/rate, convex and rising; a flat ladder, a line and
a hinge are special cases of it. All of them whose sum of squares is within t² of the least are in
the region, and a figure's 95 % interval is what it takes over them: the profile likelihood, which
asks for no choice of a form first. Source: Bates & Watts, Nonlinear Regression Analysis and Its
Applications (1988), section 6.1.1; for a knee Hansen, Econometrica 68 (2000), section 3.

At each knee a curve is linear in base, fast bytes and more bytes, none below 0, so that the region
is a part of an ellipsoid. A linear figure is largest on one of its faces, where some of the three
are 0 and the others free: all faces are looked at, and knees on a grid that is made finer at the
region's ends.
"""

import itertools
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

KNEES_A_GAP = 16
"""Between two rungs, at first."""
FINER = 32
"""Times, at both ends of the knees that are possible."""
KNEE_CHANCE = 0.01
"""How often may chance make a knee?"""
UNKNOWNS = 4
"""Figures of the general curve: base, two slopes, knee."""
BASE, FAST, MORE = range(3)
_FACES = tuple(
    list(kept) for size in (1, 2, 3) for kept in itertools.combinations((BASE, FAST, MORE), size)
)
_STRAIGHT = [place for place, kept in enumerate(_FACES) if MORE not in kept]
_TOLERANCE = 1e-9
_ROUNDS = 36
_LARGEST = 1e9
"""s/GB: slower and faster rates than its inverse are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """What a curve goes through: float64[n] each, from the fastest rung."""

    x: Floats
    step_s: Floats
    error_ratio: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class _Faces:
    """The least squares of every knee, on each face: some of the three free, and the others 0."""

    best: Floats
    """`float64[faces, knees, 3]`."""
    inverse: Floats
    """`float64[faces, knees, 3, 3]`: of the normal equations, 0 for what is not free."""
    squares: Floats
    """`float64[faces, knees]`: their sum there."""
    is_allowed: Bools
    """`bool[faces, knees]`: is nothing below 0?"""

    def allowed(self) -> Floats:
        """`float64[faces, knees]`: the squares, infinite where something is below 0."""
        allowed: Floats = np.where(self.is_allowed, self.squares, np.inf)
        return allowed

    def at(self, places: Bools) -> "_Faces":
        """Of these knees."""
        return _Faces(
            best=self.best[:, places],
            inverse=self.inverse[:, places],
            squares=self.squares[:, places],
            is_allowed=self.is_allowed[:, places],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """The curves that can't be told from the best."""

    knees: Floats
    """1/rate in s/GB, rising; those at which some curve is possible."""
    faces: _Faces
    least: float
    """The sum of squares of the best curve."""
    of_a_line: float
    """The same of the best line."""
    scale: float
    """How many times the expected squares are those of rungs around the best curve; 1 at least."""
    cap: float
    """Of a curve in the region."""

    def has_knee(self, dof: int) -> bool:
        """Is a straight line, or none that rises, so much worse that it is not chance?

        An F test at 1 % of two figures more: P(F > f) = (1 + 2 f / dof) ^ (−dof / 2). The knee's
        place is looked for, which lets chance win more often, and the curve may bend one way only,
        which halves that: by simulation 0 to 1 % of lines have a knee (docs/sensitivity.md).
        """
        limit: float = dof / 2 * (KNEE_CHANCE ** (-2 / dof) - 1)
        return (self.of_a_line - self.least) / 2 > limit * self.scale

    def up_to(self, knee: float) -> "Region":
        """The curves of it whose knee is no slower than that."""
        is_kept = self.knees <= knee
        if not is_kept.any():
            return self
        return replace(self, knees=self.knees[is_kept], faces=self.faces.at(is_kept))

    def ends(self, weights: Floats) -> tuple[float, float]:
        """Between which ends lies a sum of base, fast and more bytes with these weights?

        `float64[3]`, or one row a knee: `float64[knees, 3]`.
        """
        low, high = self.ends_by_knee(np.broadcast_to(weights, (len(self.knees), 3)))
        return float(low.min()), float(high.max())

    def ends_by_knee(self, weights: Floats) -> tuple[Floats, Floats]:
        """The same for each knee: `float64[knees]` each; empty regions are (∞, −∞)."""
        faces = self.faces
        left = self.cap - faces.squares
        slope = np.einsum("fkij,kj->fki", faces.inverse, weights)
        spread = np.einsum("ki,fki->fk", weights, slope)
        length = np.sqrt(np.maximum(left, 0) / np.maximum(spread, 1e-300))
        step = np.where(spread[..., None] > 0, slope * length[..., None], 0.0)
        floor = -_TOLERANCE * np.abs(faces.best).max(axis=2, keepdims=True)
        ends = []
        for side, none in ((-1.0, np.inf), (1.0, -np.inf)):
            point = faces.best + side * step
            is_in = (left >= 0) & (point >= floor).all(axis=2)
            ends.append(np.where(is_in, np.einsum("ki,fki->fk", weights, point), none))
        return ends[0].min(axis=0), ends[1].max(axis=0)

    def reached(self, gain_ratio: float) -> tuple[float, float]:
        """From which 1/rate on is a step longer than its base by this share? The ends of it."""
        low = np.full(len(self.knees), 1 / _LARGEST)
        high = np.full(len(self.knees), _LARGEST)
        starts, stops = (low.copy(), high.copy()), (low.copy(), high.copy())
        for _ in range(_ROUNDS):
            for (below, above), which in ((starts, 1), (stops, 0)):
                middle = np.sqrt(below * above)
                beyond = np.maximum(middle - self.knees, 0.0)
                weights = np.stack([np.full_like(middle, -gain_ratio), middle, beyond], axis=1)
                is_reached = self.ends_by_knee(weights)[which] > 0
                above[:] = np.where(is_reached, middle, above)
                below[:] = np.where(is_reached, below, middle)
        first, last = float(starts[1].min()), float(stops[1].max())
        return (0.0 if first < 2 / _LARGEST else first), (np.inf if last > _LARGEST / 2 else last)


def region_of(points: Points, reach: float) -> Region:
    """All curves whose sum of squares is at most `reach`² above the least.

    Where rungs lie further off the best curve than their errors say, all errors are as many times
    larger. Source: the scale factor of the Particle Data Group, Review of Particle Physics,
    section 5.2.2. Weights are of fitted times: measured ones would draw it to what is low.
    """
    x = points.x
    knees = _first_knees(x)
    errors = points.step_s * points.error_ratio
    for _ in range(2):
        errors = _fitted(_faces(knees, x, points.step_s, errors), knees, x) * points.error_ratio
    faces = _faces(knees, x, points.step_s, errors)
    least, dof = float(faces.allowed().min()), len(x) - UNKNOWNS
    scale = max(1.0, least / dof) if dof > 0 else 1.0
    knees = _finer(knees, faces.allowed().min(axis=0) <= least + scale * reach**2)
    faces = _faces(knees, x, points.step_s, errors)
    by_knee = faces.allowed().min(axis=0)
    cap = float(by_knee.min()) + scale * reach**2
    return Region(
        knees=knees[by_knee <= cap],
        faces=faces.at(by_knee <= cap),
        least=float(by_knee.min()),
        of_a_line=float(faces.allowed()[_STRAIGHT].min()),
        scale=scale,
        cap=cap,
    )


def _first_knees(x: Floats) -> Floats:
    """From just beyond the fastest rung to just before the slowest."""
    gaps = [
        np.geomspace(start, end, KNEES_A_GAP, endpoint=False)
        for start, end in itertools.pairwise(x.tolist())
    ]
    knees = np.concatenate(gaps)
    knees[0] = x[0] + 0.02 * (knees[1] - x[0])
    return knees


def _finer(knees: Floats, is_possible: Bools) -> Floats:
    """The same with more of them around the first and the last that are possible."""
    places = np.flatnonzero(is_possible)
    added = [
        np.geomspace(knees[place], knees[place + 1], FINER)
        for end in (int(places[0]), int(places[-1]))
        for place in (end - 1, end)
        if 0 <= place < len(knees) - 1
    ]
    return np.unique(np.concatenate([knees, *added]))


def _faces(knees: Floats, x: Floats, step_s: Floats, errors: Floats) -> _Faces:
    beyond = np.maximum(x[None, :] - knees[:, None], 0.0)
    columns = np.stack([np.ones_like(beyond), np.broadcast_to(x, beyond.shape), beyond], axis=2)
    scaled = columns / errors[None, :, None]
    lengths = np.sqrt((scaled**2).sum(axis=1))
    unit, wanted = scaled / lengths[:, None, :], step_s / errors
    normal = np.einsum("kni,knj->kij", unit, unit)
    inverse = np.zeros((len(_FACES), *normal.shape))
    for face, kept in enumerate(_FACES):
        part = np.ix_(range(len(knees)), kept, kept)
        inverse[face][part] = np.linalg.pinv(normal[part], rcond=1e-13, hermitian=True)
    best = np.einsum("fkij,knj,n->fki", inverse, unit, wanted, optimize=True)
    off = wanted - np.einsum("kni,fki->fkn", unit, best)
    return _Faces(
        best=best / lengths,
        inverse=inverse / lengths[:, :, None] / lengths[:, None, :],
        squares=(off**2).sum(axis=2),
        is_allowed=(best >= 0).all(axis=2),
    )


def _fitted(faces: _Faces, knees: Floats, x: Floats) -> Floats:
    """`float64[n]`: the times of the best curve."""
    allowed = faces.allowed()
    face, place = np.unravel_index(int(allowed.argmin()), allowed.shape)
    parts = faces.best[face, place]
    fitted: Floats = parts[BASE] + parts[FAST] * x + parts[MORE] * np.maximum(x - knees[place], 0.0)
    return fitted
