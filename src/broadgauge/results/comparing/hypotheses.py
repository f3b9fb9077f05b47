"""Does what was measured agree with what the author of the experiment expected?

A case supports the statement when its 95 % interval over launches lies within the bounds, refutes
it when the interval lies outside of them, and else nobody can tell. The statement is about each of
its k cases, so:

- supported only if every case supports it. No correction: the statement is wrong only if one case
  is, and that one would have to pass by chance (an intersection-union test).
  Source: Berger, Technometrics 24 (1982).
- refuted if any case refutes it. Among k true cases one strays by chance k times as often, so to
  refute, a case's interval is taken at 1 − 0.05 / k (Bonferroni; it asks for no independence, and
  the cases of one run share partners and blocks). k counts all cases selected, also those that
  failed, so that it never depends on what was measured.
- else can't tell.

A ratio or an efficiency needs pairs of one block: what the machine did meanwhile cancels. A value
has no partner; what drifts between launches is in its interval, what held for the whole run is not.

A case that is its own partner is what the others are compared with: the statement is not about it.
Failed trials count in no figure; they, and warnings about the trials that count, are caveats: the
verdict is about what was measured here, and a reader must know under which circumstances.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

from broadgauge.results.comparing.hypothesis_figures import HypothesisFigure, figure_of
from broadgauge.results.comparing.partners import Partner, partner_of, smallest_world
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.results.resolution import launches_to_tell
from broadgauge.results.statistics import FEWEST_FOR_A_VERDICT, FEWEST_UNFLAGGED
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.hypothesis import Hypothesis
from broadgauge.specs.records.record import Severity

ERROR_RATE = 0.05


class HypothesisVerdict(StrEnum):
    SUPPORTED = "supported"
    REFUTED = "refuted"
    CANNOT_TELL = "can't tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseAnswer:
    """What one case says of the statement."""

    summary: CaseSummary
    partner: CaseSummary | None
    """What it is compared with; None: a value, or no partner was found."""
    estimate: Estimate | None
    """With its 95 % interval; None where there is no figure, with the reason."""
    verdict: HypothesisVerdict
    reason: str = ""
    """Why it can't be told; empty where it can."""
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HypothesisResult:
    """What all its cases say of a hypothesis."""

    hypothesis: Hypothesis
    verdict: HypothesisVerdict
    reason: str
    """Which cases decided or could not; empty where one case speaks for itself."""
    answers: tuple[CaseAnswer, ...]
    caveats: tuple[str, ...]
    """What a reader must know beside the verdict."""


def evaluate(hypothesis: Hypothesis, run: RunSummary) -> HypothesisResult:
    """Supported, refuted, or can't tell?"""
    selected = [s for s in run.candidates if hypothesis.cases.matches(s.case)]
    asked = [(summary, _partner(hypothesis, summary, run)) for summary in selected]
    asked = [(summary, partner) for summary, partner in asked if not partner.is_itself]
    if not asked:
        reason = "no case is selected"
        if selected:
            reason = "only the case is selected that the others would be compared with"
        return _result(hypothesis, HypothesisVerdict.CANNOT_TELL, reason, ())
    confidence = 1 - ERROR_RATE / len(asked)
    answers = tuple(_answer(hypothesis, summary, partner, confidence) for summary, partner in asked)
    verdict, reason = _together(answers)
    return _result(hypothesis, verdict, reason, answers)


def _result(
    hypothesis: Hypothesis,
    verdict: HypothesisVerdict,
    reason: str,
    answers: tuple[CaseAnswer, ...],
) -> HypothesisResult:
    caveats = dict.fromkeys(caveat for answer in answers for caveat in answer.caveats)
    return HypothesisResult(
        hypothesis=hypothesis,
        verdict=verdict,
        reason=reason,
        answers=answers,
        caveats=tuple(caveats),
    )


def _partner(hypothesis: Hypothesis, summary: CaseSummary, run: RunSummary) -> Partner:
    if hypothesis.quantity == "value":
        return Partner(summary=None)
    if hypothesis.over is not None:
        return partner_of(summary, hypothesis.over, run.candidates)
    return smallest_world(summary, run.candidates, needs_results=False)


def _together(answers: tuple[CaseAnswer, ...]) -> tuple[HypothesisVerdict, str]:
    """The rules of the module's docstring."""
    by_verdict: dict[HypothesisVerdict, list[CaseAnswer]] = {}
    for answer in answers:
        by_verdict.setdefault(answer.verdict, []).append(answer)
    for verdict, words in (
        (HypothesisVerdict.REFUTED, "refuted by"),
        (HypothesisVerdict.CANNOT_TELL, "can't tell of"),
    ):
        found = by_verdict.get(verdict)
        if found:
            if len(answers) == 1:
                return verdict, found[0].reason
            labels = ", ".join(answer.summary.case.label for answer in found)
            return verdict, f"{words} {len(found)} of {len(answers)} cases: {labels}"
    return HypothesisVerdict.SUPPORTED, (
        "" if len(answers) == 1 else f"by all {len(answers)} cases"
    )


def _answer(
    hypothesis: Hypothesis, summary: CaseSummary, partner: Partner, confidence: float
) -> CaseAnswer:
    sides = [side for side in (summary, partner.summary) if side is not None]
    caveats = [caveat for side in sides for caveat in _caveats(side)]
    found = figure_of(hypothesis, summary, partner, confidence)
    if isinstance(found, str):
        return CaseAnswer(
            summary=summary,
            partner=partner.summary,
            estimate=None,
            verdict=HypothesisVerdict.CANNOT_TELL,
            reason=found,
            caveats=tuple(caveats),
        )
    verdict, reason = _judge(hypothesis, found, confidence)
    launches = found.estimate.launches
    if FEWEST_FOR_A_VERDICT <= launches < FEWEST_UNFLAGGED:
        caveats.append(f"only {launches} launches: provisional below {FEWEST_UNFLAGGED}")
    return CaseAnswer(
        summary=summary,
        partner=partner.summary,
        estimate=found.estimate,
        verdict=verdict,
        reason=reason,
        caveats=(*found.caveats, *caveats),
    )


def _judge(
    hypothesis: Hypothesis, figure: HypothesisFigure, confidence: float
) -> tuple[HypothesisVerdict, str]:
    """Where does the interval lie? The reason where that is on both sides of a bound."""
    estimate = figure.estimate
    low, high = estimate.low, estimate.high
    if low is None or high is None or estimate.launches < FEWEST_FOR_A_VERDICT:
        reason = f"{estimate.launches} of the {FEWEST_FOR_A_VERDICT} launches a verdict needs"
        return HypothesisVerdict.CANNOT_TELL, reason
    floor = -math.inf if hypothesis.at_least is None else hypothesis.at_least
    ceiling = math.inf if hypothesis.at_most is None else hypothesis.at_most
    if floor <= low and high <= ceiling:
        return HypothesisVerdict.SUPPORTED, ""
    wide_low, wide_high = figure.refuting
    if wide_low is not None and wide_high is not None and (wide_high < floor or wide_low > ceiling):
        return HypothesisVerdict.REFUTED, ""
    if high < floor or low > ceiling:
        reason = (
            f"outside at 95 %, but with so many cases one may stray by chance: at "
            f"{100 * confidence:.4g} % the interval reaches the bound"
        )
        return HypothesisVerdict.CANNOT_TELL, reason
    bounds = [bound for bound in (floor, ceiling) if low <= bound <= high]
    reason = "the interval reaches across the bound" + launches_to_tell(estimate, *bounds)
    return HypothesisVerdict.CANNOT_TELL, reason


def _caveats(summary: CaseSummary) -> list[str]:
    """Failed trials, and warnings about those that count."""
    label = summary.case.label
    total = summary.num_ok + summary.num_failed
    lines = [f"{label}: {summary.num_failed} of {total} trials failed"] * bool(summary.num_failed)
    rules: dict[str, int] = {}
    for record in summary.good:
        for rule in {f.rule for f in record.findings if f.severity is not Severity.INFO}:
            rules[rule] = rules.get(rule, 0) + 1
    lines += [
        f"{label}: {rule} in {count} of {summary.num_ok} trials"
        for rule, count in sorted(rules.items())
    ]
    return lines
