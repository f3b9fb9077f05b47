"""What does a case wait for most? Each kind of workload has a rule of its own (advise/kinds/)."""

from broadgauge.advise.kinds.registry import in_advise
from broadgauge.advise.verdicts.imported_verdict import verdict_of_imported
from broadgauge.advise.verdicts.verdict import Bound, Verdict, verdict_that
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.specs.records.failures import is_alike
from broadgauge.specs.records.record import Status


def verdict(summary: CaseSummary, run: RunSummary) -> Verdict:
    """What does this case wait for most?"""
    if summary.num_ok and summary.case.imported is not None:
        return verdict_of_imported(summary)
    if summary.num_ok:
        return in_advise(summary.case.workload).verdict(summary, run)
    return verdict_that(Bound.UNKNOWN, _why_without_figures(summary))


def _why_without_figures(summary: CaseSummary) -> str:
    """Where all failed: who did, and at which line. A failure's first line says it."""
    count = summary.num_failed
    if not count:
        return "not measured yet"
    how = "its only trial failed" if count == 1 else f"all {count} trials failed"
    errors = [record.error for record in summary.records if record.status in _FAILED]
    if not errors or errors[0] is None or not errors[0].message:
        return how
    if count > 1:
        how += " alike" if all(is_alike(errors[0], each) for each in errors) else ", the first"
    return f"{how}: {errors[0].headline}"


_FAILED = (Status.FAILED, Status.TIMEOUT)
