"""Do the experiment's hypotheses hold, under which circumstances, and what did others publish?

A host-bound case keeps its part in the verdict: the figure is what this machine gave, and dropping
it would leave the choice of cases to what was measured. But a reader must not take it for the
network's, so that it is host-bound stands beside the verdict.
"""

from collections.abc import Iterator, Mapping

from broadgauge.advise.verdicts.verdict import Bound, Verdict
from broadgauge.analysis.model import JudgedAnswer, JudgedHypothesis, JudgedPublished
from broadgauge.results.comparing.hypotheses import CaseAnswer, HypothesisResult, evaluate
from broadgauge.results.comparing.published import PublishedRow, published_rows
from broadgauge.results.model import CaseSummary, RunSummary

Verdicts = Mapping[str, Verdict]
"""By the case's key."""


def judged_hypotheses(run: RunSummary, verdicts: Verdicts) -> tuple[JudgedHypothesis, ...]:
    """Every hypothesis of the experiment, in its order."""
    return tuple(_judged(evaluate(each, run), verdicts) for each in run.plan.hypotheses)


def _judged(result: HypothesisResult, verdicts: Verdicts) -> JudgedHypothesis:
    return JudgedHypothesis(
        hypothesis=result.hypothesis,
        verdict=result.verdict,
        reason=result.reason,
        answers=tuple(map(_answer, result.answers)),
        caveats=(*_host_limits(result, verdicts), *result.caveats),
    )


def _answer(answer: CaseAnswer) -> JudgedAnswer:
    return JudgedAnswer(
        case=answer.summary.case.label,
        against=None if answer.partner is None else answer.partner.case.label,
        estimate=answer.estimate,
        verdict=answer.verdict,
        reason=answer.reason,
    )


def _host_limits(result: HypothesisResult, verdicts: Verdicts) -> Iterator[str]:
    sides: dict[str, CaseSummary] = {}
    for answer in result.answers:
        for side in (answer.summary, answer.partner):
            if side is not None and side.case.link is not None:
                sides[side.case.key] = side
    for key, summary in sides.items():
        if verdicts[key].bound is Bound.HOST:
            yield f"{summary.case.label} is {verdicts[key].sentence}"


def judged_published(run: RunSummary) -> tuple[JudgedPublished, ...]:
    """Each published figure with ours, in the experiment's order."""
    return tuple(map(_published, published_rows(run)))


def _published(row: PublishedRow) -> JudgedPublished:
    return JudgedPublished(
        figure=row.figure,
        case=None if row.summary is None else row.summary.case.label,
        ours=row.ours,
        reason=row.reason,
        ours_over_theirs=row.ours_over_theirs,
        first=row.first,
        theirs_over_first_ratio=row.theirs_over_first_ratio,
        ours_over_first=row.ours_over_first,
    )
