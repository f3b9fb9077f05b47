"""What do single lines say? For each rule that was seen: symptom, cause and fix, said once."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from broadgauge.doctor.log.circumstances import circumstances_of
from broadgauge.doctor.log.clocks import span_words
from broadgauge.doctor.log.conclusions.conclusion import Conclusion, quoted
from broadgauge.doctor.log.facts import LogReading, Place, ProcessFacts, Seen, Speaker
from broadgauge.doctor.log.origins import subjects_words
from broadgauge.doctor.log.rule import FindingText, text_of
from broadgauge.doctor.log.speakers import number_words, rank_words, who
from broadgauge.specs.records.record import Confidence, Finding, Severity
from broadgauge.wording.amounts import show_time
from broadgauge.wording.listing import listed

_FIELD = re.compile(r"\{\{|\}\}|\{(?P<name>[a-z_]+)\}")
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)?")
_VARIABLE = re.compile(r"\b(?:NCCL|RCCL|GLOO|UCX)_[A-Z0-9_]{2,60}")
_RANKS = "ranks"
_MOST_VALUES = 3
UNKNOWN_WARNING = "nccl-warning-unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """One `Seen` with the text that holds for it."""

    seen: Seen
    text: FindingText

    def words(self, ranks: str) -> tuple[str, str, str]:
        """Symptom, cause and fix, filled in."""
        fields = {**self.seen.fields, _RANKS: ranks}
        text = self.text
        return _filled(text.symptom, fields), _filled(text.cause, fields), _filled(text.fix, fields)

    @property
    def kind(self) -> tuple[str, ...]:
        """Equal where nothing but numbers differs, whoever said it."""
        return (self.seen.rule.id, *(_NUMBER.sub("#", words) for words in self.words("")))


def line_conclusions(reading: LogReading) -> Iterator[Conclusion]:
    """A finding for each thing said, one for all that differ in nothing but numbers."""
    groups: dict[tuple[str, ...], list[_Said]] = {}
    holds = circumstances_of(reading)
    for seen in reading.seen:
        text = text_of(seen.rule, seen.fields, holds)
        if text is not None:
            said = _Said(seen=seen, text=text)
            groups.setdefault(said.kind, []).append(said)
    for group in groups.values():
        yield _conclusion(reading, group)


def unknown_warnings(reading: LogReading, told: Collection[Place]) -> Iterator[Conclusion]:
    """NCCL's own warnings that no rule knows, all in one finding; but for those told elsewhere."""
    warnings = [each for each in reading.unknown_warnings if each.place not in told]
    if not warnings:
        return
    lines = [(each.place, each.text) for each in warnings]
    yield Conclusion(
        place=lines[0][0],
        finding=Finding(
            rule=UNKNOWN_WARNING,
            severity=Severity.WARNING,
            symptom=f"NCCL warned of something that no rule knows{subjects_words(warnings)}",
            evidence=(*quoted(lines), *_counted(len(lines), 0, "")),
            cause="read its words: NCCL warns of what it can't do, or does another way",
            fix=(
                "search for the words in NCCL's issues; a rule of your own can explain them "
                "next time"
            ),
            confidence=Confidence.POSSIBLE,
        ),
    )


def _conclusion(reading: LogReading, group: Sequence[_Said]) -> Conclusion:
    speakers = {speaker for said in group for speaker in said.seen.speakers}
    told = {rank for said in group for rank in said.seen.ranks}
    ranks = rank_words(told) if told and not speakers else who(reading, speakers)
    symptom, cause, fix = map(_ranged, zip(*(said.words(ranks) for said in group), strict=True))
    lines = sorted(line for said in group for line in said.seen.lines)
    first = group[0]
    return Conclusion(
        place=lines[0][0] if lines else None,
        finding=Finding(
            rule=first.seen.rule.id,
            severity=first.text.severity,
            symptom=symptom,
            evidence=(
                *quoted(lines),
                *_counted(
                    sum(said.seen.count for said in group),
                    len(speakers or told),
                    _span([said.seen for said in group]),
                ),
                *_variables(reading, speakers, f"{symptom} {cause} {fix}"),
            ),
            cause=cause or None,
            fix=fix or None,
            confidence=first.text.confidence,
        ),
    )


def _variables(reading: LogReading, speakers: Collection[Speaker], words: str) -> tuple[str, ...]:
    """What the variables are set to that the finding speaks of, by who said its lines."""
    processes = [p for who, p in reading.processes.items() if not speakers or who in speakers]
    named = dict.fromkeys(_VARIABLE.findall(words))
    told = {f"{name}={value}" for name in named for value in _values_of(processes, name)}
    return tuple(sorted(told)[:_MOST_VALUES])


def _values_of(processes: Iterable[ProcessFacts], name: str) -> Iterator[str]:
    for process in processes:
        if name in process.variables:
            yield process.variables[name]


def _filled(words: str, fields: Mapping[str, str]) -> str:
    """`{name}` by what the line told, `{limit_ms}` as a time; `{{` and `}}` are braces."""

    def filled(match: re.Match[str]) -> str:
        name = match["name"]
        if name is None:
            return match.group()[0]
        value = fields.get(name)
        if value is None:
            return match.group()
        is_time = name.endswith("_ms") and value.isdecimal()
        return show_time(int(value) / 1000) if is_time else value

    return _FIELD.sub(filled, words)


def _ranged(texts: Sequence[str]) -> str:
    """One text of several that differ in numbers: `GPUs 0 to 7`, `mlx5_0, mlx5_1 and mlx5_2`.

    Where two places hold the same numbers, as of ranks 0 and 1 and of ranks 1 and 0, ranges would
    mix them up: then the first text stands for all.
    """
    texts = list(dict.fromkeys(texts))
    columns = [
        list(dict.fromkeys(column))
        for column in zip(*(text.split(" ") for text in texts), strict=True)
    ]
    varying = [frozenset(column) for column in columns if len(column) > 1]
    if len(set(varying)) < len(varying):
        return texts[0]
    return " ".join(map(_values, columns))


def _values(words: Sequence[str]) -> str:
    if len(words) == 1:
        return words[0]
    marks = words[0][len(words[0].rstrip(",.;:)")) :]
    plain = [word.rstrip(",.;:)") for word in words]
    if all(word.isdecimal() for word in plain):
        return number_words(sorted(map(int, plain))) + marks
    return listed(plain, most=_MOST_VALUES) + marks


def _span(several: Sequence[Seen]) -> str:
    """From when to when, where lines say it; of files in any order."""
    firsts = [seen.first_clock for seen in several if seen.first_clock is not None]
    lasts = [seen.last_clock for seen in several if seen.last_clock is not None]
    return span_words(min(firsts, default=None), max(lasts, default=None))


def _counted(count: int, num_processes: int, span: str) -> tuple[str, ...]:
    """`said 16 times by 8 processes, 15:16:23 to 15:23:42`; nothing where the lines above are
    all of it."""
    if count <= 1:
        return ()
    by = "one process" if num_processes == 1 else f"{num_processes} processes"
    when = f", {span}" if span else ""
    return (f"said {count} times{f' by {by}' if num_processes else ''}{when}",)
