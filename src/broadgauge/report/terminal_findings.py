"""How are the findings of a run's trials printed? As `doctor` prints its own."""

from rich.console import Console

from broadgauge.analysis.model import Analysis, FindingGroup
from broadgauge.report.terminal_doctor import print_finding
from broadgauge.report.terminal_tables import heading
from broadgauge.specs.record import Finding


def print_run_findings(analysis: Analysis, console: Console) -> None:
    """Each kind once, with evidence, cause, fix, and the cases that it was seen in."""
    if analysis.findings:
        heading("Findings", console)
    for group in analysis.findings:
        print_finding(as_finding(group), console, where_words(group))


def as_finding(group: FindingGroup) -> Finding:
    """The one finding that stands for all of its kind."""
    return Finding(
        rule=group.rule,
        severity=group.severity,
        symptom=group.symptom,
        evidence=group.evidence,
        cause=group.cause,
        fix=group.fix,
        confidence=group.confidence,
    )


def where_words(group: FindingGroup) -> str:
    """`3 trials: train 2x1 slow, train 2x1 fast`."""
    trials = "1 trial" if group.num_trials == 1 else f"{group.num_trials} trials"
    return f"{trials}: {', '.join(group.cases)}"
