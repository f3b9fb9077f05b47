"""How is text of others shown? Without characters that steer a terminal or a page."""

from collections.abc import Sequence

_KEPT = frozenset("\n\t\u00a0\u202f")


def plain(text: str) -> str:
    """Control characters, lone surrogates and reversed writing become spaces; lines stay lines."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in _KEPT else " " for char in text)


def printable(line: str) -> str:
    """The same on one line."""
    return " ".join(plain(line).split("\n")).replace("\t", " ")


def lasting(notes: Sequence[str]) -> tuple[str, ...]:
    """The plan's notes without its guesses: once a run has ended, its times are known."""
    return tuple(note for note in notes if not note.endswith(" a launch is a guess"))
