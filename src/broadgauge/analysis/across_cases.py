"""What do several cases say together, which none of their trials says?"""

from collections.abc import Iterator

from broadgauge.advise.findings.backend_bound import backend_bound
from broadgauge.advise.findings.case_finding import CaseFinding
from broadgauge.advise.findings.negative_scaling import negative_scaling
from broadgauge.analysis.model import FindingGroup
from broadgauge.results.model import RunSummary


def across_cases(run: RunSummary) -> Iterator[FindingGroup]:
    """A group for each finding, with the trials of its cases that were good."""
    for found in (*backend_bound(run), *negative_scaling(run)):
        yield _group(found)


def _group(found: CaseFinding) -> FindingGroup:
    finding = found.finding
    return FindingGroup(
        rule=finding.rule,
        severity=finding.severity,
        symptom=finding.symptom,
        evidence=finding.evidence,
        cause=finding.cause,
        fix=finding.fix,
        confidence=finding.confidence,
        cases=tuple(summary.case.label for summary in found.cases),
        num_trials=sum(summary.num_ok for summary in found.cases),
    )
