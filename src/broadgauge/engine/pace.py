"""How long will the rest take? The plan's estimate, scaled by how it has been so far."""

from collections.abc import Sequence

from broadgauge.engine.estimate import start_s, trial_s
from broadgauge.specs.case import Case

_TRUSTED_FROM_S = 10.0
"""A few short trials say little of the rest."""


class Remaining:
    """Expected against elapsed seconds, and what is still expected."""

    def __init__(self) -> None:
        self._left_s = 0.0
        self._expected_s = 0.0
        self._elapsed_s = 0.0

    def expect(self, cases: Sequence[Case]) -> None:
        """A launch is to come, with one trial of each of these."""
        if cases:
            self._left_s += start_s(cases[0]) + sum(trial_s(case) for case in cases)

    def started(self, case: Case, elapsed_s: float) -> None:
        """The ranks of a launch came up."""
        self._pass(start_s(case), elapsed_s)

    def ran(self, case: Case, elapsed_s: float, *, is_ok: bool) -> None:
        """A trial is over. How long failures take says nothing of the others."""
        if is_ok:
            self._pass(trial_s(case), elapsed_s)
        else:
            self._left_s -= trial_s(case)

    def _pass(self, expected_s: float, elapsed_s: float) -> None:
        self._left_s -= expected_s
        self._expected_s += expected_s
        self._elapsed_s += elapsed_s

    def seconds(self) -> float:
        """How long will the rest take?"""
        left_s = max(0.0, self._left_s)
        if self._elapsed_s < _TRUSTED_FROM_S:
            return left_s
        return left_s * self._elapsed_s / self._expected_s
