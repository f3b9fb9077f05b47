"""Which cases of a run are the two sides of a comparison with a baseline?"""

from dataclasses import dataclass, replace

from broadgauge.results.comparing.compare_cases import compare_cases, headline_metrics
from broadgauge.results.model import CaseComparison, CaseSummary, RunSummary
from broadgauge.specs.case import Arm, CaseName, case_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """One case as the experiment has it, and as the baseline had it."""

    candidate: CaseSummary
    baseline: CaseSummary


def sides_of(run: RunSummary) -> tuple[Sides, ...]:
    """Every case that both arms have, in the plan's order."""
    baseline = {case_name(s.case): s for s in run.cases if s.case.arm == "baseline"}
    return tuple(
        Sides(candidate=summary, baseline=baseline[case_name(summary.case)])
        for summary in run.cases
        if summary.case.arm == "candidate" and case_name(summary.case) in baseline
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmatched:
    """Labels of the cases that one arm has and the other has not."""

    candidates: tuple[str, ...]
    baselines: tuple[str, ...]
    """Not run at all, as a plan with a baseline is made."""


def unmatched(run: RunSummary) -> Unmatched:
    """Of which cases can a comparison of the arms say nothing?"""
    names: dict[Arm, set[CaseName]] = {"candidate": set(), "baseline": set()}
    for summary in run.cases:
        names[summary.case.arm].add(case_name(summary.case))
    both = names["candidate"] & names["baseline"]
    alone = [s.case for s in run.cases if case_name(s.case) not in both]
    planned = () if run.plan.baseline is None else run.plan.baseline.only_there
    return Unmatched(
        candidates=tuple(case.label for case in alone if case.arm == "candidate"),
        baselines=(*(case.label for case in alone if case.arm == "baseline"), *planned),
    )


def of_arm(run: RunSummary, arm: Arm) -> RunSummary:
    """The run as if it had this arm only; itself where it has no baseline."""
    if run.plan.baseline is None:
        return run
    cases = tuple(summary for summary in run.cases if summary.case.arm == arm)
    keys = {summary.case.key for summary in cases}
    return replace(run, cases=cases, records=tuple(r for r in run.records if r.case_key in keys))


def arms_compared(run: RunSummary) -> tuple[CaseComparison, ...]:
    """How do the experiment's cases (B) do against the baseline's (A), paired block by block?"""
    rows = (
        compare_cases(sides.baseline, sides.candidate, metric)
        for sides in sides_of(run)
        for metric in headline_metrics(sides.candidate)
    )
    return tuple(row for row in rows if row is not None)
