"""Do the experiment's hypotheses hold, and under which circumstances?

A host-bound case keeps its part in the verdict: the figure is what this machine gave, and dropping
it would leave the choice of cases to what was measured. But a reader must not take it for the
network's, so that it is host-bound stands beside the verdict.
"""

from dataclasses import replace

from broadgauge.advise.model import Bound
from broadgauge.advise.verdict import verdict
from broadgauge.results.hypotheses import HypothesisResult, evaluate
from broadgauge.results.model import CaseSummary, RunSummary


def judged_hypotheses(run: RunSummary) -> tuple[HypothesisResult, ...]:
    """Every hypothesis of the experiment, in its order."""
    return tuple(
        _with_host_limits(evaluate(hypothesis, run), run) for hypothesis in run.plan.hypotheses
    )


def _with_host_limits(result: HypothesisResult, run: RunSummary) -> HypothesisResult:
    sides: dict[str, CaseSummary] = {}
    for answer in result.answers:
        for side in (answer.summary, answer.partner):
            if side is not None and side.case.link is not None:
                sides[side.case.key] = side
    lines = []
    for summary in sides.values():
        found = verdict(summary, run)
        if found.bound is Bound.HOST:
            lines.append(f"{summary.case.label} is {found.sentence}")
    return replace(result, caveats=(*lines, *result.caveats))
