"""What is wrong with a job, by its logs? What single lines say, and several lines together."""

from collections.abc import Iterator

from broadgauge.doctor.log.conclusions.conclusion import Conclusion
from broadgauge.doctor.log.conclusions.registry import RULES
from broadgauge.doctor.log.facts import LogReading
from broadgauge.doctor.log.line_findings import line_conclusions, unknown_warnings
from broadgauge.specs.record import Finding, Severity

_WORST_FIRST = (Severity.ERROR, Severity.WARNING, Severity.INFO)


def log_findings(reading: LogReading) -> tuple[Finding, ...]:
    """All findings: the worst first, then by where their first line stands."""
    found = sorted(_conclusions(reading), key=_order)
    return tuple(conclusion.finding for conclusion in found)


def _conclusions(reading: LogReading) -> Iterator[Conclusion]:
    concluded = [conclusion for rule in RULES for conclusion in rule(reading)]
    explained = {name for conclusion in concluded for name in conclusion.explains}
    tells = {seen.rule.id: seen.rule.tells for seen in reading.seen}
    for each in line_conclusions(reading):
        if not {each.finding.rule, tells.get(each.finding.rule)} & explained:
            yield each
    yield from unknown_warnings(reading)
    yield from concluded


def _order(conclusion: Conclusion) -> tuple[int, bool, str, int]:
    """Files in the order of their names; what is of no single line comes last."""
    rank = _WORST_FIRST.index(conclusion.finding.severity)
    place = conclusion.place
    if place is None:
        return (rank, True, "", 0)
    return (rank, False, place.file, place.line)
