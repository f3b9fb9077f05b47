"""Which rule knows these words? First by how they begin, then by one of few expressions."""

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from broadgauge.doctor.log.lines import TRIGGERS
from broadgauge.doctor.log.masking import masked
from broadgauge.doctor.log.prefix import MOST_CHARACTERS
from broadgauge.doctor.log.rule import Rule, Wording

_HEAD = 6
"""Characters that a message is looked up by: as many as tell most of NCCL's apart."""
_MOST_REMEMBERED = 8192
_LONGEST_REMEMBERED = 512
"""Characters: others are no lines that ranks repeat, and would fill the memory."""
_AFTER = 6
"""Characters after a trigger that lines of others are looked up by."""


class Match(NamedTuple):
    """A rule that knows the line, and what the line told."""

    rule: Rule
    wording: Wording
    fields: dict[str, str]


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


class _Known(NamedTuple):
    literal: str
    """Stands in every such line."""
    pattern: str
    """Of a regular expression, compiled when a line first comes near it: most never do."""
    rule: Rule
    wording: Wording
    parts: tuple[str, ...]
    """All of its words, the longest first."""
    num_characters: int
    """Of all its words: of two that know a line the one with more of them says more of it."""

    def match(self, text: str) -> Match | None:
        found = _compiled(self.pattern).match(text)
        return None if found is None else Match(self.rule, self.wording, found.groupdict())

    def search(self, text: str) -> Match | None:
        found = _compiled(self.pattern).search(text)
        return None if found is None else Match(self.rule, self.wording, found.groupdict())


@dataclass(slots=True)
class _AfterTrigger:
    """Wordings by what follows a trigger: few of a hundred go on as a line does."""

    words: dict[str, list[_Known]] = field(default_factory=dict)
    lengths: tuple[int, ...] = ()

    def add(self, words: str, known: _Known) -> None:
        self.words.setdefault(words, []).append(known)
        self.lengths = tuple(sorted({len(each) for each in self.words}))


class Matcher:
    """All rules, ready to be asked. Of two that know a line the one with longer words wins."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._by_head: dict[str, list[_Known]] = {}
        self._short_heads: dict[str, list[_Known]] = {}
        self._remembered: dict[str, Match | None] = {}
        self._loose: dict[str, list[_Known]] = {}
        """By their longest words, the longest of all first."""
        self._of_text: dict[str, _AfterTrigger] = {}
        """By trigger: each wording under one that stands in its words."""
        for trigger in TRIGGERS:
            self._of_text[trigger.decode()] = _AfterTrigger()
        for rule in rules:
            for wording in rule.lines:
                self._add(rule, wording)
        for known in (*self._by_head.values(), *self._short_heads.values()):
            known.sort(key=lambda each: -len(each.literal))
        self._all_short_heads = tuple(self._short_heads)
        self._loose = dict(sorted(self._loose.items(), key=lambda each: -len(each[0])))

    @property
    def triggers(self) -> tuple[bytes, ...]:
        """One stands in every line that a rule knows: the usual ones, and what other rules need."""
        return tuple(trigger.encode() for trigger in self._of_text)

    def _add(self, rule: Rule, wording: Wording) -> None:
        parts = wording.parts
        longest = max(parts, key=len)
        literal = longest if wording.level == "text" or not parts[0] else parts[0]
        known = _Known(literal, wording.pattern, rule, wording, *_words(parts))
        if wording.level == "text":
            self._add_text(known)
        elif len(parts[0]) >= _HEAD:
            self._by_head.setdefault(parts[0][:_HEAD], []).append(known)
        elif parts[0]:
            self._short_heads.setdefault(parts[0], []).append(known)
        else:
            self._loose.setdefault(literal, []).append(known)

    def _add_text(self, known: _Known) -> None:
        for trigger, known_by in self._of_text.items():
            for part in known.wording.parts:
                if trigger in part:
                    known_by.add(part[part.index(trigger) :][: len(trigger) + _AFTER], known)
                    return
        self._of_text[known.literal] = _AfterTrigger()
        self._of_text[known.literal].add(known.literal, known)

    def match_nccl(self, body: str) -> Match | None:
        """What NCCL said, without its prefix. The level is not asked: it changed with versions.
        Of what looks like a secret no field has more than a mask.

        Answers are remembered: ranks say the same, and errors repeat for hours.
        """
        if body in self._remembered:
            return self._remembered[body]
        words = body[:MOST_CHARACTERS]
        found = self._match_nccl(words)
        if found is not None and (without := masked(words)) != words:
            found = self._match_nccl(without)
        if len(body) > _LONGEST_REMEMBERED:
            return found
        if len(self._remembered) >= _MOST_REMEMBERED:
            self._remembered.clear()
        self._remembered[body] = found
        return found

    def _match_nccl(self, body: str) -> Match | None:
        for known in self._by_head.get(body[:_HEAD], ()):
            if body.startswith(known.literal) and (found := known.match(body)) is not None:
                return found
        if body.startswith(self._all_short_heads):
            for head, several in self._short_heads.items():
                if body.startswith(head):
                    for known in several:
                        if (found := known.match(body)) is not None:
                            return found
        for literal, several in self._loose.items():
            if literal in body:
                for known in several:
                    if (found := known.match(body)) is not None:
                        return found
        return None

    def match_text(self, line: str) -> Match | None:
        """What anyone else printed; also a warning of NCCL's that another program repeats."""
        line = line[:MOST_CHARACTERS]
        found = self._match_text(line)
        if found is not None:
            return found
        body = line.lstrip()
        for known in self._by_head.get(body[:_HEAD], ()):
            if known.wording.level == "warn" and (found := known.match(body)) is not None:
                return found
        return None

    def _match_text(self, line: str) -> Match | None:
        """Of all that know it the one with the most words."""
        best = 0
        found: Match | None = None
        tried: set[int] = set()
        for trigger, known_by in self._of_text.items():
            at = line.find(trigger)
            while at >= 0:
                for length in known_by.lengths:
                    for known in known_by.words.get(line[at : at + length], ()):
                        if known.num_characters <= best or id(known) in tried:
                            continue
                        tried.add(id(known))
                        if not all(part in line for part in known.parts):
                            continue
                        match = known.search(line)
                        if match is not None:
                            best, found = known.num_characters, match
                at = line.find(trigger, at + 1)
        return found


def _words(parts: tuple[str, ...]) -> tuple[tuple[str, ...], int]:
    """The words between places, the longest first, and how long they are together."""
    words = sorted(filter(None, parts), key=len, reverse=True)
    return tuple(words), sum(map(len, words))
