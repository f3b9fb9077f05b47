"""How are the findings of a run's trials printed? As `doctor` prints its own."""

from rich.console import Console

from broadgauge.advise.findings.shared_cores import SHARING_RULES
from broadgauge.analysis.model import Analysis, FindingGroup
from broadgauge.report.doctor.terminal import print_finding, print_part, print_symptom
from broadgauge.report.terminal.tables import heading
from broadgauge.report.words.findings import cause_words
from broadgauge.specs.records.record import Finding, Severity


def print_run_findings(analysis: Analysis, console: Console) -> None:
    """Each kind once, with evidence, cause, fix, and the cases that it was seen in."""
    if analysis.findings:
        heading("Findings", console)
    for group in analysis.findings:
        print_finding(as_finding(group), console, seen_in_words(group))


def worst_findings(analysis: Analysis) -> list[FindingGroup]:
    """Errors, then warnings, those of most trials first; without what the run's warning says."""
    bad = [
        group
        for group in analysis.findings
        if group.severity is not Severity.INFO
        and not (group.rule in SHARING_RULES and analysis.shared_cores is not None)
    ]
    return sorted(bad, key=lambda group: (group.severity is not Severity.ERROR, -group.num_trials))


def print_briefly(group: FindingGroup, console: Console) -> None:
    """What was seen, and what helps or else why."""
    finding = as_finding(group)
    print_symptom(finding, console)
    if finding.fix:
        print_part("fix", finding.fix, console)
    else:
        print_part("cause", cause_words(finding.cause, finding.confidence), console)


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


def seen_in_words(group: FindingGroup) -> str:
    """`3 trials: train 2x1 slow, train 2x1 fast`."""
    trials = "1 trial" if group.num_trials == 1 else f"{group.num_trials} trials"
    return f"{trials}: {', '.join(group.cases)}"
