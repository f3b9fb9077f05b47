"""How long will the rest take?

As long as the same case took. Else, of a user's command, as long as it took on other networks and
shapes; of what can be estimated, the plan's estimate, scaled by how wrong the others were.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from broadgauge.engine.expected_time import start_s, trial_s
from broadgauge.engine.kinds.registry import in_engine
from broadgauge.specs.case import Case

_TRUSTED_FROM_S = 10.0
"""A few short trials say little of other cases."""
_MOST_SCALED = 4.0
"""One case that was badly estimated says little of the others; 1 / this is the least."""

_Part = tuple[str, str]
"""A launch's start by device and ranks, or a trial by its case."""


@dataclass(slots=True)
class _Pace:
    """Seconds expected and elapsed of one kind of part."""

    expected_s: float
    """Of one."""
    guessed_of: str | None = None
    """The workload of which the estimate is a guess that knows nothing of it, as of a user's
    command; None: it can be scaled."""
    elapsed_s: list[float] = field(default_factory=list)


class Remaining:
    """What is still expected, part by part."""

    def __init__(self) -> None:
        self._left: Counter[_Part] = Counter()
        self._paces: dict[_Part, _Pace] = {}

    def expect(self, cases: Sequence[Case]) -> None:
        """A launch is to come, with one trial of each of these."""
        if cases:
            self._left[self._start(cases[0])] += 1
            self._left.update(map(self._trial, cases))

    def started(self, case: Case, elapsed_s: float) -> None:
        """The ranks of a launch came up."""
        self._pass(self._start(case), elapsed_s)

    def ran(self, case: Case, elapsed_s: float, *, is_ok: bool) -> None:
        """A trial is over. How long failures take says nothing of the others."""
        self._pass(self._trial(case), elapsed_s if is_ok else None)

    def _start(self, case: Case) -> _Part:
        part = ("start", f"{case.device} {case.world_size}")
        self._paces.setdefault(part, _Pace(expected_s=start_s(case)))
        return part

    def _trial(self, case: Case) -> _Part:
        part = ("trial", case.key)
        is_known = in_engine(case.workload).is_duration_known
        guessed_of = None if is_known else case.workload.name
        self._paces.setdefault(part, _Pace(expected_s=trial_s(case), guessed_of=guessed_of))
        return part

    def _pass(self, part: _Part, elapsed_s: float | None) -> None:
        self._left[part] -= 1
        if elapsed_s is not None:
            self._paces[part].elapsed_s.append(elapsed_s)

    def seconds(self) -> float:
        """How long will the rest take?"""
        factor, learnt_s = self._factor(), self._learnt_s()
        return sum(
            count * _one_s(self._paces[part], factor, learnt_s)
            for part, count in self._left.items()
            if count > 0
        )

    def _learnt_s(self) -> dict[str, float]:
        """How long did one trial of each guessed workload take, its cases alike?"""
        seen: dict[str, list[float]] = {}
        for pace in self._paces.values():
            if pace.guessed_of is not None and pace.elapsed_s:
                seen.setdefault(pace.guessed_of, []).append(fmean(pace.elapsed_s))
        return {name: fmean(elapsed_s) for name, elapsed_s in seen.items()}

    def _factor(self) -> float:
        """How many times as long as estimated did it take so far, guesses left out?"""
        paces = [pace for pace in self._paces.values() if pace.guessed_of is None]
        elapsed_s = sum(sum(pace.elapsed_s) for pace in paces)
        expected_s = sum(pace.expected_s * len(pace.elapsed_s) for pace in paces)
        if elapsed_s < _TRUSTED_FROM_S:
            return 1.0
        return min(_MOST_SCALED, max(1 / _MOST_SCALED, elapsed_s / expected_s))


def _one_s(pace: _Pace, factor: float, learnt_s: Mapping[str, float]) -> float:
    if pace.elapsed_s:
        return fmean(pace.elapsed_s)
    if pace.guessed_of is not None:
        return learnt_s.get(pace.guessed_of, pace.expected_s)
    return pace.expected_s * factor
