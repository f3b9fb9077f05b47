"""What is one conclusion of several lines, and what is a rule that draws it?"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from broadgauge.doctor.log.facts import LogReading, Place
from broadgauge.specs.records.record import Finding

MOST_LINES = 3
MOST_CHARACTERS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """A finding, and where its first line stands."""

    finding: Finding
    place: Place | None = None
    """None: of no single line."""
    explains: frozenset[str] = frozenset()
    """What rules tell (`Rule.tells`, or their ids) whose own findings it makes superfluous."""
    quotes: frozenset[Place] = frozenset()
    """Warnings that no rule knows and that it tells: they are not said once more."""
    is_consequence: bool = False
    """It follows from whatever error is told of the job, and is told only where there is none."""
    is_cause: bool = False
    """What ranks lose, or wait for, follows from it: rules of `any-error` are not told."""


ConclusionRule = Callable[[LogReading], Iterator[Conclusion]]
"""Yields what it concludes; nothing where the facts are healthy or not known."""


def quoted(lines: Iterable[tuple[Place, str]]) -> tuple[str, ...]:
    """Lines as evidence: `file:line: text`, the first three, 400 characters of each text."""
    shown = list(lines)[:MOST_LINES]
    return tuple(f"{place}: {_cut(text)}" for place, text in shown)


def _cut(text: str) -> str:
    plain = "".join(character if character.isprintable() else " " for character in text)
    plain = plain.strip()
    return plain if len(plain) <= MOST_CHARACTERS else f"{plain[: MOST_CHARACTERS - 1]}…"
