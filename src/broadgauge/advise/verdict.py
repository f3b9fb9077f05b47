"""What does a case wait for most? Each kind of workload has a rule of its own (advise/kinds/)."""

from broadgauge.advise.kinds.registry import in_advise
from broadgauge.advise.model import Bound, Verdict, verdict_that
from broadgauge.results.model import CaseSummary, RunSummary


def verdict(summary: CaseSummary, run: RunSummary) -> Verdict:
    """What does this case wait for most?"""
    if summary.num_ok:
        return in_advise(summary.case.workload).verdict(summary, run)
    return verdict_that(Bound.UNKNOWN, _why_without_figures(summary.num_failed))


def _why_without_figures(num_failed: int) -> str:
    if num_failed == 1:
        return "its only trial failed"
    return f"all {num_failed} trials failed" if num_failed else "not measured yet"
