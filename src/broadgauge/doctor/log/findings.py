"""What is wrong with a job, by its logs? What single lines say, and several lines together."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from broadgauge.doctor.log.conclusions.conclusion import Conclusion
from broadgauge.doctor.log.conclusions.registry import RULES
from broadgauge.doctor.log.facts import LogReading
from broadgauge.doctor.log.last_words import last_words, raised_unexplained
from broadgauge.doctor.log.line_findings import line_conclusions, unknown_warnings
from broadgauge.specs.records.record import Finding, Severity

ANY_ERROR = "any-error"
ANY_OTHER = "any-other-error"


def log_findings(reading: LogReading) -> tuple[Finding, ...]:
    """All findings: the worst first, then by where their first line stands."""
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


def is_silent(reading: LogReading) -> bool:
    """Has it no line of NCCL, nor one that any rule or table knows?"""
    return not reading.num_nccl_lines and not reading.num_known_lines


def silence_findings(reading: LogReading) -> tuple[Finding, ...]:
    """That nothing is known is no health: another program's log, or one that says little."""
    if not is_silent(reading) or reading.problems:
        return ()
    return (
        Finding(
            rule="log-unknown",
            severity=Severity.INFO,
            symptom="whether this job is well is unknown: no line is of a speaker that is known",
            evidence=(f"{reading.num_lines:,} lines read, none of NCCL, torch or a launcher",),
            cause=None,
            fix=(
                "NCCL_DEBUG=INFO makes NCCL say what it does; give the logs of all ranks, with "
                "what they wrote to stderr"
            ),
            confidence=None,
        ),
    )


def _conclusions(reading: LogReading) -> Iterator[Conclusion]:
    concluded = [conclusion for rule in RULES for conclusion in rule(reading)]
    explained = {name for conclusion in concluded for name in conclusion.explains}
    tells = {seen.rule.id: seen.rule.tells for seen in reading.seen}
    said = list(line_conclusions(reading))
    raised = raised_unexplained(reading, [each.finding for each in (*said, *concluded)])
    is_explained = bool(raised) or any(each.is_cause for each in concluded)
    consequences = _consequences(reading, said, is_explained=is_explained)
    explained |= set(consequences)
    shown = [
        each for each in said if not {each.finding.rule, tells.get(each.finding.rule)} & explained
    ]
    shown = _as_severe(shown, said, consequences)
    if any(rule in consequences for rule in _errors(said)):
        concluded = [_raised_to_error(each) if each.is_cause else each for each in concluded]
    yield from shown
    if raised or any(_is_error_itself(each) for each in (*shown, *concluded)):
        concluded = [each for each in concluded if not each.is_consequence]
    quotes = {place for conclusion in concluded for place in conclusion.quotes}
    yield from unknown_warnings(reading, quotes)
    yield from concluded
    has_error = any(each.finding.severity is Severity.ERROR for each in (*shown, *concluded))
    yield from last_words(reading, raised, has_error=has_error)


def _consequences(
    reading: LogReading, said: Sequence[Conclusion], *, is_explained: bool
) -> dict[str, frozenset[str]]:
    """Rules that only say again what another rule explains, and of which rules: ranks that lost
    one that crashed. `is_explained`: several lines together say why, or a process ended by an
    exception that no rule knows.
    """
    causes = {seen.rule.id: seen.rule.consequence_of for seen in reading.seen}
    errors = _errors(said)
    told = {each.finding.rule for each in said}
    if is_explained or any(not {ANY_ERROR, ANY_OTHER}.intersection(causes[r]) for r in errors):
        told.add(ANY_ERROR)
    if is_explained or any(ANY_OTHER not in causes[rule] for rule in errors):
        told.add(ANY_OTHER)
    return {
        rule: found for rule, of in causes.items() if (found := frozenset(told.intersection(of)))
    }


def _as_severe(
    shown: Sequence[Conclusion],
    said: Sequence[Conclusion],
    consequences: Mapping[str, frozenset[str]],
) -> list[Conclusion]:
    """A cause is as bad as what it brought about: of a job that ended it is an error."""
    severe = {
        cause
        for each in said
        if each.finding.severity is Severity.ERROR
        for cause in consequences.get(each.finding.rule, ())
    }
    return [_raised_to_error(each) if each.finding.rule in severe else each for each in shown]


def _is_error_itself(conclusion: Conclusion) -> bool:
    return conclusion.finding.severity is Severity.ERROR and not conclusion.is_consequence


def _errors(said: Sequence[Conclusion]) -> set[str]:
    return {each.finding.rule for each in said if each.finding.severity is Severity.ERROR}


def _raised_to_error(conclusion: Conclusion) -> Conclusion:
    """A warning whose consequence ended the job."""
    if conclusion.finding.severity is not Severity.WARNING:
        return conclusion
    finding = conclusion.finding.model_copy(update={"severity": Severity.ERROR})
    return dataclasses.replace(conclusion, finding=finding)


def _order(conclusion: Conclusion) -> tuple[int, bool, str, int]:
    """Files in the order of their names; what is of no single line comes last."""
    rank = conclusion.finding.severity.rank
    place = conclusion.place
    if place is None:
        return (rank, True, "", 0)
    return (rank, False, place.file, place.line)
