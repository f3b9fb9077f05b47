"""What do the rules say of a machine that a test has built?"""

from pathlib import Path

from broadgauge.doctor.host.findings import host_findings
from broadgauge.doctor.host.reading import read_hardware
from broadgauge.specs.records.record import Finding, Severity


def findings(root: Path, **environ: str) -> dict[str, Finding]:
    """By rule; the last of each."""
    return {finding.rule: finding for finding in host_findings(read_hardware(root, environ))}


def warned(root: Path, **environ: str) -> set[str]:
    """Rules that say more than a note."""
    found = findings(root, **environ)
    return {rule for rule, each in found.items() if each.severity is not Severity.INFO}
