"""What does one rule say of a reading?"""

from broadgauge.doctor.log.facts import LogReading
from broadgauge.doctor.log.findings import log_findings
from broadgauge.specs.records.record import Finding


def found(reading: LogReading, rule: str) -> tuple[Finding, ...]:
    return tuple(finding for finding in log_findings(reading) if finding.rule == rule)


def the(reading: LogReading, rule: str) -> Finding:
    (finding,) = found(reading, rule)
    return finding
