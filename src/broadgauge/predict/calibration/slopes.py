"""How does each step time change with each factor? All of them in one evaluation.

An evaluation of a few cases costs as much as one of a hundred, so the cases are repeated once for
each factor, with that factor moved a little in its copy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from broadgauge.predict.case import TrainingCase
from broadgauge.predict.costs.compute import compute_costs
from broadgauge.predict.facts.arrays import Times
from broadgauge.predict.facts.columns import columns_of
from broadgauge.predict.facts.knowledge import FactorKey, Knowledge
from broadgauge.predict.fitting.robust import WIDTH, Vector
from broadgauge.predict.timeline.evaluation import evaluate

if TYPE_CHECKING:
    from broadgauge.predict.facts.columns import Columns

OF_COLUMNS = {
    "node_rate": "node_rate_ratio",
    "link_rate": "link_rate_ratio",
    "across": "across_slowness",
}
"""Factors that the columns carry, by the column; kernels and launches ask for theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowKnowledge(Knowledge):
    """Knowledge whose factors differ from case to case, whatever their GPU and framework."""

    by_row: Mapping[str, Times] = field(default_factory=dict)

    def factors_of(self, kind: str, columns: "Columns") -> Times:
        """That of each case."""
        found = self.by_row.get(kind)
        return np.ones(len(columns)) if found is None else found


class Slopes:
    """Logarithms of step times and their slopes, for factors of these cases."""

    def __init__(
        self,
        cases: Sequence[TrainingCase],
        keys: Sequence[FactorKey],
        keys_of_cases: Sequence[Sequence[FactorKey]],
        knowledge: Knowledge,
    ) -> None:
        """`keys_of_cases`: which of `keys` belong to each case."""
        without = {key: each for key, each in knowledge.factors.items() if key not in set(keys)}
        self._knowledge = replace(knowledge, factors=without)
        self._num_cases = len(cases)
        self._keys = list(keys)
        self._belongs: npt.NDArray[np.bool_] = np.array(
            [[key in mine for key in keys] for mine in keys_of_cases], dtype=np.bool_
        ).reshape(len(cases), len(keys))
        self._columns = columns_of(list(cases) * (len(keys) + 1), self._knowledge)

    def at(self, x: Vector) -> tuple[Vector, npt.NDArray[np.float64]]:
        """`float64[cases]` and `float64[cases, factors]`, at these logarithms of factors."""
        num_factors = len(self._keys)
        moved = np.vstack([np.zeros(num_factors), WIDTH * np.eye(num_factors)]) + x
        by_kind = {
            kind: np.exp(self._of_kind(kind, moved)) for kind in {key[0] for key in self._keys}
        }
        carried = {
            column: getattr(self._columns, column) * by_kind[kind]
            for kind, column in OF_COLUMNS.items()
            if kind in by_kind
        }
        columns = replace(self._columns, **carried)
        known = self._knowledge
        rows = RowKnowledge(
            values=known.values,
            factors=known.factors,
            residuals=known.residuals,
            fitted_on=known.fitted_on,
            by_row=by_kind,
        )
        step_s = evaluate(columns, compute_costs(columns, rows)).step_s
        table = np.log(step_s).reshape(num_factors + 1, self._num_cases)
        return table[0], np.ascontiguousarray((table[1:] - table[0]).T / WIDTH)

    def _of_kind(self, kind: str, moved: npt.NDArray[np.float64]) -> Vector:
        """The logarithm of one kind's factor for each case of each copy."""
        of_kind = np.array([key[0] == kind for key in self._keys])
        return np.asarray((moved[:, of_kind] @ self._belongs[:, of_kind].T).ravel())
