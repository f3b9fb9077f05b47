"""Are the variables that the log says were set spelt right, known, possible and wise?"""

from collections.abc import Iterator

from broadgauge.doctor.host.variables import variable_findings
from broadgauge.doctor.log.conclusions.conclusion import Conclusion
from broadgauge.doctor.log.facts import LogReading, ProcessFacts
from broadgauge.doctor.log.job import first_place
from broadgauge.doctor.log.speakers import who
from broadgauge.specs.record import Finding


def variables_set(reading: LogReading) -> Iterator[Conclusion]:
    """What is said of a variable, once for all processes of which it is true."""
    judged: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[Finding, ...]] = {}
    found: dict[Finding, list[ProcessFacts]] = {}
    for process in reading.processes.values():
        if not process.variables:
            continue
        key = (process.version or "", tuple(sorted(process.variables.items())))
        if key not in judged:
            judged[key] = variable_findings(process.variables, version=process.version, facts=None)
        for finding in judged[key]:
            found.setdefault(finding, []).append(process)
    for finding, processes in found.items():
        ranks = who(reading, (process.speaker for process in processes))
        evidence = (*finding.evidence, f"set on {ranks}")
        yield Conclusion(
            place=first_place(processes),
            finding=finding.model_copy(update={"evidence": evidence}),
        )
