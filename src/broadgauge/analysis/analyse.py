"""What does a run mean? Made from its records alone, once, for every view of it.

The thresholds of verdicts and findings, with their reasons: advise/limits.py.
"""

from broadgauge.advise.case_verdict import verdict
from broadgauge.advise.engines import engine_notes
from broadgauge.advise.findings.shared_cores import foreign_load
from broadgauge.analysis.across_cases import across_cases
from broadgauge.analysis.claims import judged_hypotheses, judged_published
from broadgauge.analysis.finding_groups import finding_groups
from broadgauge.analysis.judged_cases import judged_case
from broadgauge.analysis.model import AnalysedRun, Analysis, JudgedRatio, MadeFrom
from broadgauge.results.comparing.arms import arms_compared, of_arm
from broadgauge.results.comparing.compare_cases import against_reference, between_platforms
from broadgauge.results.comparing.gate import Gate, gate
from broadgauge.results.cost import cost_of
from broadgauge.results.model import CaseComparison, RunSummary


def analysed(run: RunSummary) -> AnalysedRun:
    """The run with its analysis, which is not stored."""
    return AnalysedRun(run=run, analysis=analyse(run), cost=cost_of(run))


def analyse(run: RunSummary, made_from: MadeFrom | None = None) -> Analysis:
    """Every verdict, finding, comparison and answer of the run."""
    verdicts = {summary.case.key: verdict(summary, run) for summary in run.cases}
    has_baseline = run.plan.baseline is not None
    return Analysis(
        made_from=made_from,
        experiment_name=run.plan.experiment_name,
        shared_cores=foreign_load(run),
        notes=engine_notes(run),
        cases=tuple(judged_case(summary, verdicts[summary.case.key]) for summary in run.cases),
        findings=(*finding_groups(run), *across_cases(run)),
        networks=tuple(map(_ratio, against_reference(of_arm(run, "candidate")))),
        platforms=tuple(map(_ratio, between_platforms(run))),
        hypotheses=judged_hypotheses(run, verdicts),
        published=judged_published(run),
        arms=tuple(map(_ratio, arms_compared(run))) if has_baseline else (),
        gate=_gate(run),
    )


def _ratio(row: CaseComparison) -> JudgedRatio:
    found = row.comparison
    return JudgedRatio(
        a=row.a_label,
        b=row.b_label,
        metric=row.metric,
        direction=row.direction,
        a_figure=row.a,
        b_figure=row.b,
        ratio=None if found is None else found.ratio,
        verdict=None if found is None else found.verdict,
        p_value=None if found is None else found.p_value,
        is_paired=row.is_paired,
        notes=row.notes,
    )


def _gate(run: RunSummary) -> Gate | None:
    baseline = run.plan.baseline
    if baseline is None or baseline.fail_above_ratio is None:
        return None
    return gate(run, baseline.fail_above_ratio)
