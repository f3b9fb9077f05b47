"""Which rule knows these words? First by how they begin, then by one of few expressions."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from broadgauge.doctor.log.lines import TRIGGERS
from broadgauge.doctor.log.prefix import MOST_CHARACTERS
from broadgauge.doctor.log.rule import Rule, Wording

_HEAD = 6
"""Characters that a message is looked up by: as many as tell most of NCCL's apart."""
_MOST_REMEMBERED = 8192
_LONGEST_REMEMBERED = 512
"""Characters: others are no lines that ranks repeat, and would fill the memory."""


class Match(NamedTuple):
    """A rule that knows the line, and what the line told."""

    rule: Rule
    wording: Wording
    fields: dict[str, str]


class _Known(NamedTuple):
    literal: str
    """Stands in every such line."""
    pattern: re.Pattern[str]
    rule: Rule
    wording: Wording

    @property
    def num_characters(self) -> int:
        """Of all its words: of two that know a line the one with more of them says more of it."""
        return sum(map(len, self.wording.parts))

    def match(self, text: str) -> Match | None:
        found = self.pattern.match(text)
        return None if found is None else Match(self.rule, self.wording, found.groupdict())

    def search(self, text: str) -> Match | None:
        found = self.pattern.search(text)
        return None if found is None else Match(self.rule, self.wording, found.groupdict())


class Matcher:
    """All rules, ready to be asked. Of two that know a line the one with longer words wins."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._by_head: dict[str, list[_Known]] = {}
        self._short_heads: dict[str, list[_Known]] = {}
        self._remembered: dict[str, Match | None] = {}
        self._loose: list[_Known] = []
        self._of_text: dict[str, list[_Known]] = {trigger.decode(): [] for trigger in TRIGGERS}
        """By trigger: each wording under one that stands in its words."""
        for rule in rules:
            for wording in rule.lines:
                self._add(rule, wording)
        for known in (*self._by_head.values(), *self._short_heads.values(), self._loose):
            known.sort(key=lambda each: -len(each.literal))
        for known in self._of_text.values():
            known.sort(key=lambda each: -each.num_characters)

    @property
    def triggers(self) -> tuple[bytes, ...]:
        """One stands in every line that a rule knows: the usual ones, and what other rules need."""
        return tuple(trigger.encode() for trigger in self._of_text)

    def _add(self, rule: Rule, wording: Wording) -> None:
        pattern, parts = re.compile(wording.pattern), wording.parts
        longest = max(parts, key=len)
        if wording.level == "text":
            known = _Known(longest, pattern, rule, wording)
            self._of_text.setdefault(self._trigger_of(parts) or longest, []).append(known)
        elif len(parts[0]) >= _HEAD:
            known = _Known(parts[0], pattern, rule, wording)
            self._by_head.setdefault(parts[0][:_HEAD], []).append(known)
        elif parts[0]:
            known = _Known(parts[0], pattern, rule, wording)
            self._short_heads.setdefault(parts[0], []).append(known)
        else:
            self._loose.append(_Known(longest, pattern, rule, wording))

    def _trigger_of(self, parts: tuple[str, ...]) -> str | None:
        """The last one that its words hold: the first ones are common."""
        held = (trigger for trigger in self._of_text if any(trigger in part for part in parts))
        return next(held, None)

    def match_nccl(self, body: str) -> Match | None:
        """What NCCL said, without its prefix. The level is not asked: it changed with versions.

        Answers are remembered: ranks say the same, and errors repeat for hours.
        """
        if body in self._remembered:
            return self._remembered[body]
        found = self._match_nccl(body[:MOST_CHARACTERS])
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
        for head, several in self._short_heads.items():
            if body.startswith(head):
                for known in several:
                    if (found := known.match(body)) is not None:
                        return found
        for known in self._loose:
            if known.literal in body and (found := known.match(body)) is not None:
                return found
        return None

    def match_text(self, line: str) -> Match | None:
        """What anyone else printed; also a warning of NCCL's that another program repeats."""
        line = line[:MOST_CHARACTERS]
        best: _Known | None = None
        found: Match | None = None
        for trigger, several in self._of_text.items():
            if trigger not in line:
                continue
            for known in several:
                if best is not None and known.num_characters <= best.num_characters:
                    break
                if known.literal in line and (match := known.search(line)) is not None:
                    best, found = known, match
                    break
        if found is not None:
            return found
        body = line.lstrip()
        for known in self._by_head.get(body[:_HEAD], ()):
            if known.wording.level == "warn" and (found := known.match(body)) is not None:
                return found
        return None
