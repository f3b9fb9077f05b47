"""Are the variables that the log says were set spelt right, known, possible and wise?"""

from collections.abc import Iterator

from broadgauge.doctor.host.variables import variable_findings
from broadgauge.doctor.log.conclusions.conclusion import Conclusion
from broadgauge.doctor.log.facts import LogReading, ProcessFacts
from broadgauge.doctor.log.job import first_place
from broadgauge.doctor.log.speakers import who
from broadgauge.specs.records.record import Finding


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
    yield from _printed(reading)
    for finding, processes in found.items():
        ranks = who(reading, (process.speaker for process in processes))
        evidence = (*finding.evidence, f"set on {ranks}")
        yield Conclusion(
            place=first_place(processes),
            finding=finding.model_copy(update={"evidence": evidence}),
        )


def _printed(reading: LogReading) -> Iterator[Conclusion]:
    """Of those that the job printed and NCCL did not name: it may not have read them."""
    read = {name for process in reading.processes.values() for name in process.variables}
    printed = reading.printed_variables
    values = {name: value for name, (_, value) in printed.items() if name not in read}
    versions = [process.version for process in reading.processes.values() if process.version]
    version = versions[0] if versions else None
    for finding in variable_findings(values, version=version, facts=None):
        named = [name for name in values if any(name in line for line in finding.evidence)]
        place = printed[named[0]][0] if named else None
        where = () if place is None else (f"{place}: printed by the job",)
        yield Conclusion(
            place=place,
            finding=finding.model_copy(update={"evidence": (*finding.evidence, *where)}),
        )
