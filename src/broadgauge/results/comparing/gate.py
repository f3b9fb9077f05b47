"""Is the experiment slower than its baseline by more than a limit? For a script to act upon.

For each case that both arms have, each of its headline metrics (compare_cases.py) gives a
slowdown: how much more time the candidate takes than the baseline (of a rate: how much less of it
there is, by the same ratio), from interleaved pairs of launches, with a 95 % interval.

regression     slower beyond chance, and the estimate is above the limit
no regression  the interval's upper end is at most the limit
can't tell     neither; fewer than 3 pairs; pairs that were not interleaved; a run not finished;
               a trial of either side that failed, timed out or was skipped

Cases that only one arm has are counted and named: nothing is said of them.
"Beyond chance" counts all cases and metrics together: Holm's method on the two-sided p-values, so
that a run in which nothing changed is called slower in at most 2.5 % of all tries, however many
cases it has.
Why these rules and not others, with their error rates: docs/decisions/0006-gate.md.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from broadgauge.results.comparing.arms import Sides, Unmatched, sides_of, unmatched
from broadgauge.results.comparing.blocks import blocks_of
from broadgauge.results.comparing.compare_cases import (
    compare_in_blocks,
    direction_of,
    headline_metrics,
    metric_of,
)
from broadgauge.results.comparing.failed_partners import failures_of
from broadgauge.results.model import RunComparison, RunSummary
from broadgauge.results.resolution import launches_for, smallest_ratio
from broadgauge.results.statistics import FEWEST_FOR_A_VERDICT, PairedComparison
from broadgauge.results.student import CONFIDENCE
from broadgauge.specs.errors import ExitCode, InputError
from broadgauge.specs.estimate import Estimate

HIGHEST_LIMIT_RATIO = 10.0
_LIMIT = re.compile(r"\s*(?P<number>\d+\.?\d*|\.\d+)\s*(?P<percent>%?)\s*", re.ASCII)


class GateOutcome(StrEnum):
    """Is the candidate slower than the limit allows?"""

    NO_REGRESSION = "no regression"
    REGRESSION = "regression"
    CANNOT_TELL = "can't tell"

    @property
    def exit_code(self) -> ExitCode:
        """Source: specs/errors.py."""
        codes = {
            GateOutcome.NO_REGRESSION: ExitCode.OK,
            GateOutcome.REGRESSION: ExitCode.REGRESSION,
            GateOutcome.CANNOT_TELL: ExitCode.CANNOT_TELL,
        }
        return codes[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRow:
    """One metric of a case against its baseline."""

    label: str
    metric: str
    baseline: Estimate | None
    candidate: Estimate | None
    """None where no trial of that side succeeded."""
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
    note: str = ""
    """Which blocks were left out; empty: none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """All cases against their baseline."""

    limit_ratio: float
    rows: tuple[GateRow, ...]
    outcome: GateOutcome
    """A regression where any case is one; else can't tell where any case can't be told."""
    reason: str
    """How many cases gave it, and how many were not gated."""
    unmatched: tuple[str, ...] = ()
    """A sentence for each case that only one arm has."""

    @property
    def num_metrics(self) -> int:
        """Of the case that has most."""
        labels = [row.label for row in self.rows]
        return max(map(labels.count, labels), default=0)


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
    found = [_compared(sides, m) for sides in sides_of(run) for m in _gated_metrics(sides)]
    shown = _shown_together([each.comparison for each in found])
    rows = tuple(
        _row(each, limit_ratio, is_shown=is_shown)
        for each, is_shown in zip(found, shown, strict=True)
    )
    return _gate(limit_ratio, rows, "no case is in both arms", unmatched(run))


def gate_across_runs(comparison: RunComparison, limit_ratio: float) -> Gate:
    """Two stored runs were not interleaved: which of the two, change or moment, can't be told."""
    names = f"{comparison.a.folder.name} and {comparison.b.folder.name}"
    return _gate(
        limit_ratio,
        (),
        f"the launches of two runs were not interleaved: what else changed between {names} "
        "is in every ratio",
    )


def _gate(
    limit_ratio: float, rows: tuple[GateRow, ...], if_none: str, alone: Unmatched | None = None
) -> Gate:
    order = (GateOutcome.REGRESSION, GateOutcome.CANNOT_TELL, GateOutcome.NO_REGRESSION)
    outcomes = [row.outcome for row in rows]
    outcome = next((each for each in order if each in outcomes), GateOutcome.CANNOT_TELL)
    same = {row.label for row in rows if row.outcome is outcome}
    reason = f"{len(same)} of {len({row.label for row in rows})} cases" if rows else if_none
    if alone is None:
        return Gate(limit_ratio=limit_ratio, rows=rows, outcome=outcome, reason=reason)
    counts = [
        f"{len(labels)} that only {arm} has"
        for arm, labels in (("the experiment", alone.candidates), ("the baseline", alone.baselines))
        if labels
    ]
    return Gate(
        limit_ratio=limit_ratio,
        rows=rows,
        outcome=outcome,
        reason="; not gated: ".join((reason, ", ".join(counts))) if counts and rows else reason,
        unmatched=(
            *(f"{label}: only the experiment has it, not gated" for label in alone.candidates),
            *(f"{label}: only the baseline has it, not gated" for label in alone.baselines),
        ),
    )


def _trials_left(run: RunSummary) -> int:
    """Deciding on a part, and going on where it does not please, would not keep the error rate."""
    planned = {trial.trial_id for launch in run.plan.launches for trial in launch.trials}
    return len(planned - {record.record_id for record in run.records})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    sides: Sides
    metric: str
    comparison: PairedComparison | None
    """Time of the candidate over time of the baseline; None without an interleaved pair."""
    has_both_orders: bool
    torn: str
    """Which blocks were left out; empty: none."""
    failures: str
    """Whose trials failed; empty: nobody's."""


def _gated_metrics(sides: Sides) -> tuple[str, ...]:
    """Each headline metric that either side gave; the first, where neither gave any."""
    metrics = headline_metrics(sides.candidate)
    both = (sides.candidate.estimates, sides.baseline.estimates)
    return tuple(m for m in metrics if any(m in side for side in both)) or metrics[:1]


def _compared(sides: Sides, metric: str) -> _Compared:
    """How many times the baseline's time does the candidate take?"""
    slow, fast = sides.candidate, sides.baseline
    if direction_of(sides.candidate, metric) == "higher":
        slow, fast = fast, slow
    value_of = metric_of(metric)
    blocks = blocks_of(fast, slow, value_of)
    comparison, is_paired = compare_in_blocks(fast, slow, value_of)
    return _Compared(
        sides=sides,
        metric=metric,
        comparison=comparison if is_paired else None,
        has_both_orders=blocks.has_both_orders,
        torn=blocks.note,
        failures=failures_of(sides.candidate, sides.baseline, value_of),
    )


def _shown_together(comparisons: Sequence[PairedComparison | None]) -> list[bool]:
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
    needed = None
    if comparison is not None and not _obstacle(compared):
        needed = launches_for(comparison, limit_ratio)
    return GateRow(
        label=compared.sides.candidate.case.label,
        metric=metric,
        baseline=compared.sides.baseline.estimates.get(metric),
        candidate=compared.sides.candidate.estimates.get(metric),
        slowdown=None if comparison is None else _less_one(comparison.ratio),
        p_value=None if comparison is None else comparison.p_value,
        smallest_ratio=None if comparison is None else smallest_ratio(comparison),
        launches_needed=needed,
        outcome=outcome,
        reason=reason,
        note=compared.torn,
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
    if compared.failures:
        return compared.failures
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
