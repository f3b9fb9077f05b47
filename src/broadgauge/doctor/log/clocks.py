"""What time of day does a line say? Programs, runtimes and NCCL 2.27 write it before the rest."""

import re

_CLOCK = re.compile(r"(?<![\d:])([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?:[.,](\d{1,9}))?(?![\d:])")

_NEAR = 120
"""Characters: whoever writes a time writes it at the beginning of a line."""


def clock_in(text: str) -> str | None:
    """`15:16:23` of the first time in a line; None: it has none."""
    match = _CLOCK.search(text, 0, _NEAR)
    return None if match is None else ":".join(match.groups()[:3])


def clock_s(text: str) -> float | None:
    """The same in seconds of the day, fractions included."""
    match = _CLOCK.search(text)
    if match is None:
        return None
    hours, minutes, seconds, fraction = match.groups()
    whole = 3600 * int(hours) + 60 * int(minutes) + int(seconds)
    return whole + (float(f"0.{fraction}") if fraction else 0.0)


def span_words(first: str | None, last: str | None) -> str:
    """`15:16:23 to 15:23:42`, one of them where they are the same; nothing where none is known."""
    told = [each for each in (first, last) if each is not None]
    return " to ".join(dict.fromkeys(told))
