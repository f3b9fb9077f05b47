"""What is wrong with a job, by its logs? What single lines say, and several lines together."""

from collections.abc import Iterator, Sequence

from broadgauge.doctor.log.conclusions.conclusion import Conclusion
from broadgauge.doctor.log.conclusions.registry import RULES
from broadgauge.doctor.log.facts import LogReading
from broadgauge.doctor.log.line_findings import line_conclusions, unknown_warnings
from broadgauge.specs.record import Finding, Severity

ANY_ERROR = "any-error"
_WORST_FIRST = (Severity.ERROR, Severity.WARNING, Severity.INFO)


def log_findings(reading: LogReading) -> tuple[Finding, ...]:
    """All findings: the worst first, then by where their first line stands."""
    reading.memo.clear()
    found = sorted(_conclusions(reading), key=_order)
    return tuple(conclusion.finding for conclusion in found)


def unread_findings(reading: LogReading) -> tuple[Finding, ...]:
    """What could not be read whole: a health check must not pass for want of a log."""
    return tuple(
        Finding(
            rule="log-not-read-whole",
            severity=Severity.WARNING,
            symptom="a log could not be read whole: what it would have said is unknown",
            evidence=(problem,),
            cause=None,
            fix="give the whole file, or look at what it is",
            confidence=None,
        )
        for problem in reading.problems
    )


def _conclusions(reading: LogReading) -> Iterator[Conclusion]:
    concluded = [conclusion for rule in RULES for conclusion in rule(reading)]
    explained = {name for conclusion in concluded for name in conclusion.explains}
    tells = {seen.rule.id: seen.rule.tells for seen in reading.seen}
    said = list(line_conclusions(reading))
    explained |= _consequences(reading, said)
    for each in said:
        if not {each.finding.rule, tells.get(each.finding.rule)} & explained:
            yield each
    yield from unknown_warnings(reading)
    yield from concluded


def _consequences(reading: LogReading, said: Sequence[Conclusion]) -> set[str]:
    """Rules that only say again what another rule explains: ranks that lost one that crashed."""
    causes = {seen.rule.id: seen.rule.consequence_of for seen in reading.seen}
    errors = {each.finding.rule for each in said if each.finding.severity is Severity.ERROR}
    told = {each.finding.rule for each in said}
    if any(ANY_ERROR not in causes[rule] for rule in errors):
        told.add(ANY_ERROR)
    return {rule for rule, of in causes.items() if told.intersection(of)}


def _order(conclusion: Conclusion) -> tuple[int, bool, str, int]:
    """Files in the order of their names; what is of no single line comes last."""
    rank = _WORST_FIRST.index(conclusion.finding.severity)
    place = conclusion.place
    if place is None:
        return (rank, True, "", 0)
    return (rank, False, place.file, place.line)
