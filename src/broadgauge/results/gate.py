"""Is the experiment slower than its baseline by more than a limit? For a script to act upon.

For each case that both arms have, its first headline metric gives a slowdown: how much more time
the candidate takes than the baseline (of a rate: how much less of it there is, by the same ratio),
from interleaved pairs of launches, with a 95 % interval.

regression     slower beyond chance, and the estimate is above the limit
no regression  the interval's upper end is at most the limit
can't tell     neither; fewer than 3 pairs; pairs that were not interleaved; a run not finished

"Beyond chance" counts all cases together: Holm's method on the two-sided p-values, so that a run
in which nothing changed is called slower in at most 2.5 % of all tries, however many cases it has.
Why these rules and not others, with their error rates: docs/decisions/0006-gate.md.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise

from broadgauge.results.arms import Sides, sides_of
from broadgauge.results.compare import (
    compare_in_blocks,
    direction_of,
    headline_metrics,
    metric_of,
)
from broadgauge.results.model import CaseSummary, RunComparison, RunSummary
from broadgauge.results.resolution import launches_for, smallest_ratio
from broadgauge.results.statistics import FEWEST_FOR_A_VERDICT, Comparison
from broadgauge.results.student import CONFIDENCE
from broadgauge.specs.errors import CANNOT_TELL_EXIT_CODE, REGRESSION_EXIT_CODE, InputError
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.record import Record

HIGHEST_LIMIT_RATIO = 10.0
SLACK_S = 60.0
"""On top of what a launch may take to end and the next to start, before a pair counts as torn."""
_LIMIT = re.compile(r"\s*(?P<number>\d+\.?\d*|\.\d+)\s*(?P<percent>%?)\s*")


class GateOutcome(StrEnum):
    """Is the candidate slower than the limit allows?"""

    NO_REGRESSION = "no regression"
    REGRESSION = "regression"
    CANNOT_TELL = "can't tell"

    @property
    def exit_code(self) -> int:
        """Source: specs/errors.py."""
        codes = {
            GateOutcome.NO_REGRESSION: 0,
            GateOutcome.REGRESSION: REGRESSION_EXIT_CODE,
            GateOutcome.CANNOT_TELL: CANNOT_TELL_EXIT_CODE,
        }
        return codes[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRow:
    """One case against its baseline."""

    label: str
    metric: str
    baseline: Estimate | None
    candidate: Estimate | None
    """None where no trial of that side ended well."""
    slowdown: Estimate | None
    """0.05: 5 % more time, or a rate 1.05 times lower. None where there is no pair."""
    p_value: float | None
    """Two-sided, for "there is no slowdown", of this case by itself."""
    smallest_ratio: float | None
    """The slowdown that so many launches tell from none in 4 of 5 tries."""
    launches_needed: int | None
    """To tell the limit from none in 4 of 5 tries; None where the spread is not known."""
    outcome: GateOutcome
    reason: str
    """Of the outcome, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """All cases against their baseline."""

    limit_ratio: float
    rows: tuple[GateRow, ...]
    outcome: GateOutcome
    """A regression where any case is one; else can't tell where any case can't be told."""
    reason: str


def parse_limit(text: str) -> float:
    """`3%`, `3 %` or `0.03` → 0.03. Raises InputError."""
    match = _LIMIT.fullmatch(text)
    number = float(match["number"]) if match else 0.0
    is_percent = bool(match and match["percent"])
    limit_ratio = number / 100 if is_percent else number
    if 0 < limit_ratio < (HIGHEST_LIMIT_RATIO if is_percent else 1):
        return limit_ratio
    raise InputError(
        f"--fail-above: a slowdown is a share above 0, not `{text}`",
        hint="`--fail-above 3%`, or `--fail-above 0.03`",
    )


def gate(run: RunSummary, limit_ratio: float) -> Gate:
    """Is any case of this run slower than its baseline beyond the limit?"""
    left = _trials_left(run)
    if left:
        reason = f"the run is not finished: {left} trials are left (`run --resume`)"
        return Gate(
            limit_ratio=limit_ratio, rows=(), outcome=GateOutcome.CANNOT_TELL, reason=reason
        )
    found = [_compared(run, sides) for sides in sides_of(run)]
    shown = _shown_together([each.comparison for each in found])
    rows = tuple(
        _row(each, limit_ratio, is_shown=is_shown)
        for each, is_shown in zip(found, shown, strict=True)
    )
    return _gate(limit_ratio, rows, "no case is in both arms")


def gate_across_runs(comparison: RunComparison, limit_ratio: float) -> Gate:
    """Two stored runs were not interleaved: which of the two, change or moment, can't be told."""
    names = f"{comparison.a.folder.name} and {comparison.b.folder.name}"
    return _gate(
        limit_ratio,
        (),
        f"the launches of two runs were not interleaved: what else changed between {names} "
        "is in every ratio",
    )


def _gate(limit_ratio: float, rows: tuple[GateRow, ...], if_none: str) -> Gate:
    order = (GateOutcome.REGRESSION, GateOutcome.CANNOT_TELL, GateOutcome.NO_REGRESSION)
    outcomes = [row.outcome for row in rows]
    outcome = next((each for each in order if each in outcomes), GateOutcome.CANNOT_TELL)
    same = [row for row in rows if row.outcome is outcome]
    reason = f"{len(same)} of {len(rows)} cases" if rows else if_none
    return Gate(limit_ratio=limit_ratio, rows=rows, outcome=outcome, reason=reason)


def _trials_left(run: RunSummary) -> int:
    """Deciding on a part, and going on where it does not please, would not keep the error rate."""
    planned = {trial.trial_id for launch in run.plan.launches for trial in launch.trials}
    return len(planned - {record.record_id for record in run.records})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    sides: Sides
    metric: str
    comparison: Comparison | None
    """Time of the candidate over time of the baseline; None without an interleaved pair."""
    has_both_orders: bool


def _compared(run: RunSummary, sides: Sides) -> _Compared:
    """How many times the baseline's time does the candidate take?"""
    metric = headline_metrics(sides.candidate)[0]
    slow, fast = sides.candidate, sides.baseline
    if direction_of(sides.candidate, metric) == "higher":
        slow, fast = fast, slow
    blocks = _interleaved_blocks(run, sides)
    value_of = metric_of(metric)
    comparison, is_paired = compare_in_blocks(
        _in(blocks, fast), _in(blocks, slow), value_of, value_of
    )
    return _Compared(
        sides=sides,
        metric=metric,
        comparison=comparison if is_paired else None,
        has_both_orders=len({_is_first({block}, sides) for block in blocks}) == 2,
    )


def _is_first(block: set[int], sides: Sides) -> bool:
    """Did the candidate run before the baseline in this block?"""
    candidate, baseline = (
        min(record.position for record in _in(block, side))
        for side in (sides.candidate, sides.baseline)
    )
    return candidate < baseline


def _in(blocks: set[int], summary: CaseSummary) -> list[Record]:
    return [record for record in summary.good if record.block in blocks]


def _interleaved_blocks(run: RunSummary, sides: Sides) -> set[int]:
    """In which blocks did one side follow the other without a pause?

    A run that was ended between the two sides and resumed the next day has a pair on paper only.
    No pause is longer than a launch may take to end, and the next one to start.
    """
    limits = run.plan.limits
    longest_s = limits.teardown_s + limits.rendezvous_s + SLACK_S
    ordered = sorted(run.records, key=lambda record: record.started_unix_s)
    found = set()
    for block in {r.block for r in sides.candidate.good} & {r.block for r in sides.baseline.good}:
        pair = [r for side in (sides.candidate, sides.baseline) for r in _in({block}, side)]
        first = min(record.started_unix_s for record in pair)
        last = max(record.ended_unix_s for record in pair)
        between = [r for r in ordered if first <= r.started_unix_s and r.ended_unix_s <= last]
        pauses = [b.started_unix_s - a.ended_unix_s for a, b in pairwise(between)]
        if max(pauses, default=0.0) <= longest_s:
            found.add(block)
    return found


def _shown_together(comparisons: Sequence[Comparison | None]) -> list[bool]:
    """Which differ from 1 beyond chance, all of them taken together?

    The smallest p-value against 5 % / k, the next against 5 % / (k − 1), … until one fails.
    Source: Holm, Scandinavian Journal of Statistics 6 (1979).
    """
    p_values = [
        1.0 if each is None or each.p_value is None else each.p_value for each in comparisons
    ]
    shown = [False] * len(p_values)
    for step, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[place] > (1 - CONFIDENCE) / (len(p_values) - step):
            break
        shown[place] = True
    return shown


def _row(compared: _Compared, limit_ratio: float, *, is_shown: bool) -> GateRow:
    comparison, metric = compared.comparison, compared.metric
    outcome, reason = _judged(compared, limit_ratio, is_shown=is_shown)
    return GateRow(
        label=compared.sides.candidate.case.label,
        metric=metric,
        baseline=compared.sides.baseline.estimates.get(metric),
        candidate=compared.sides.candidate.estimates.get(metric),
        slowdown=None if comparison is None else _less_one(comparison.ratio),
        p_value=None if comparison is None else comparison.p_value,
        smallest_ratio=None if comparison is None else smallest_ratio(comparison),
        launches_needed=None if comparison is None else launches_for(comparison, limit_ratio),
        outcome=outcome,
        reason=reason,
    )


def _judged(compared: _Compared, limit_ratio: float, *, is_shown: bool) -> tuple[GateOutcome, str]:
    """Source: this module's docstring."""
    comparison = compared.comparison
    obstacle = _obstacle(compared)
    if comparison is None or obstacle:
        return GateOutcome.CANNOT_TELL, obstacle
    slowdown = _less_one(comparison.ratio)
    if is_shown and slowdown.value > limit_ratio:
        return GateOutcome.REGRESSION, "beyond chance and above the limit"
    assert slowdown.high is not None
    if slowdown.high <= limit_ratio:
        return GateOutcome.NO_REGRESSION, "a slowdown above the limit would have shown"
    if slowdown.value > limit_ratio:
        return GateOutcome.CANNOT_TELL, "above the limit, but it may be chance"
    return GateOutcome.CANNOT_TELL, "the interval reaches above the limit"


def _obstacle(compared: _Compared) -> str:
    """Why can nothing be told, whatever the figures are? Empty: it can."""
    if compared.comparison is None:
        return "no interleaved pair of launches gave a ratio"
    launches = compared.comparison.ratio.launches
    if launches < FEWEST_FOR_A_VERDICT:
        return f"{launches} interleaved pairs of launches, {FEWEST_FOR_A_VERDICT} are the fewest"
    if not compared.has_both_orders:
        return "one side always ran first: drift is in the difference"
    return ""


def _less_one(ratio: Estimate) -> Estimate:
    """1.05 times as long is 0.05 more."""
    return replace(
        ratio,
        value=ratio.value - 1,
        low=None if ratio.low is None else ratio.low - 1,
        high=None if ratio.high is None else ratio.high - 1,
    )
