"""What is said of processes that ended in words that no rule knows?

A health check must not pass a job that died. What nobody explains is an error by itself: the last
words, the first in time ahead. Words that usually follow from something else (an exit code, a line
that calls itself an error) are told only where nothing else was found.
"""

from collections.abc import Iterator, Sequence

from broadgauge.doctor.log.conclusions.conclusion import Conclusion, quoted
from broadgauge.doctor.log.facts import LastWords, LogReading
from broadgauge.specs.records.record import Confidence, Finding, Severity

RULE = "process-ended"
SURVIVED = "error-line-unknown"
_LAST_LINES = 40
"""From the end of its file: an error line that is followed by more than that was survived."""
_MOST_WORDS = 300


def raised_unexplained(reading: LogReading, told: Sequence[Finding]) -> list[LastWords]:
    """Exceptions that no rule knows, and that no finding repeats (torch prints some twice)."""
    symptoms = [finding.symptom for finding in told]
    return [
        each
        for each in reading.endings
        if each.is_raised and not any(each.words in symptom for symptom in symptoms)
    ]


def last_words(
    reading: LogReading, raised: Sequence[LastWords], *, has_error: bool
) -> Iterator[Conclusion]:
    """`raised`: of `raised_unexplained`; `has_error`: a rule explains why the job ended."""
    if raised:
        yield _ended(raised)
    elif not has_error and reading.endings:
        others = reading.endings
        last = [each for each in others if each.is_interrupt or _is_last(reading, each)]
        interrupts = [each for each in last if each.is_interrupt]
        if interrupts and len(interrupts) == len(last):
            yield _interrupted(interrupts)
        elif last:
            yield _ended(last)
        else:
            yield _survived(others)


def _is_last(reading: LogReading, ending: LastWords) -> bool:
    """Does its file end soon after it, or is it an exception, which nothing shows to be caught?"""
    file, line = ending.place
    ends = reading.lines_of_file.get(file, line)
    return ending.has_exception or ends - line <= _LAST_LINES


def _ended(endings: Sequence[LastWords]) -> Conclusion:
    ordered = sorted(endings, key=_when)
    first = ordered[0]
    others = len({each.words for each in ordered}) - 1
    who = "a process" if first.rank is None else f"rank {first.rank}"
    more = f"; {others} other{'' if others == 1 else 's'} after it" if others else ""
    return _conclusion(
        ordered,
        rule=RULE,
        severity=Severity.ERROR,
        symptom=f"{who} ended{' first' if more else ''}: {first.words[:_MOST_WORDS]}{more}",
        cause="no rule knows these words: they are the last that it said",
        fix=(
            "read what stands before the line, of the process that ended first; if the program "
            "caught it and went on, a rule of your own can say so (docs/doctor-rules.md)"
        ),
        confidence=Confidence.POSSIBLE,
    )


def _when(ending: LastWords) -> tuple[bool, float, str, int]:
    """By the time of day where lines have one, else by where they stand."""
    return (ending.clock_s is None, ending.clock_s or 0.0, *ending.place)


def _lines(endings: Sequence[LastWords]) -> tuple[str, ...]:
    counted = (f"said {len(endings)} times",) if len(endings) > 1 else ()
    each_once = {ending.words: ending for ending in reversed(endings)}
    firsts = [each for each in endings if each_once[each.words] is each]
    return (*quoted((each.place, each.text) for each in firsts), *counted)


def _interrupted(endings: Sequence[LastWords]) -> Conclusion:
    return _conclusion(
        sorted(endings, key=_when),
        rule="process-interrupted",
        severity=Severity.WARNING,
        symptom="a process was interrupted (SIGINT)",
        cause="somebody pressed Ctrl-C, or a launcher passed on that another process ended",
        fix="where nobody did: look for the process that ended first",
        confidence=Confidence.LIKELY,
    )


def _survived(endings: Sequence[LastWords]) -> Conclusion:
    ordered = sorted(endings, key=_when)
    return _conclusion(
        ordered,
        rule=SURVIVED,
        severity=Severity.WARNING,
        symptom=f"a line calls itself an error, and the log goes on: {ordered[0].words[:160]}",
        cause="no rule knows these words",
        fix="read them; a rule of your own can explain them next time (docs/doctor-rules.md)",
        confidence=Confidence.POSSIBLE,
    )


def _conclusion(
    ordered: Sequence[LastWords],
    *,
    rule: str,
    severity: Severity,
    symptom: str,
    cause: str,
    fix: str,
    confidence: Confidence,
) -> Conclusion:
    return Conclusion(
        place=ordered[0].place,
        finding=Finding(
            rule=rule,
            severity=severity,
            symptom=symptom,
            evidence=_lines(ordered),
            cause=cause,
            fix=fix,
            confidence=confidence,
        ),
    )
