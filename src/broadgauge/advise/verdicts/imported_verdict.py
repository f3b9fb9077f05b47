"""What does a case wait for that another program measured? Nobody counted what the link carried.

What can be said is whether its bandwidth is what it should be: the doctor's finding says so.
"""

from broadgauge.advise.verdicts.verdict import Bound, Verdict, verdict_that
from broadgauge.results.model import CaseSummary

_JUDGED = "busbw-"
"""How the doctor's rules begin that judge a bandwidth."""
_NOT_KNOWN = "busbw-unknown"
"""Whose fix says what would make it known."""


def verdict_of_imported(summary: CaseSummary) -> Verdict:
    """Its bound is never more than unknown; the sentence says whether its bandwidth is normal.

    Of several launches the worst speaks, and it is said how many did so.
    """
    assert summary.case.imported is not None
    found = [
        finding
        for record in summary.records
        for finding in record.findings
        if finding.rule.startswith(_JUDGED)
    ]
    if not found:
        program = summary.case.imported.program
        why = f"measured by {program}, which does not say what it waited for"
        return verdict_that(Bound.UNKNOWN, why)
    judged = min(reversed(found), key=lambda finding: finding.severity.rank)
    asks = judged.rule == _NOT_KNOWN and judged.fix is not None
    num_alike = sum(finding.rule == judged.rule for finding in found)
    of_launches = "" if num_alike == len(found) else f"; in {num_alike} of {len(found)} launches"
    words = f"{judged.symptom} ({judged.fix})" if asks else judged.symptom
    return Verdict(
        bound=Bound.UNKNOWN,
        is_slower_than_one_node=None,
        sentence=f"{words}{of_launches}",
        evidence=judged.evidence,
    )
