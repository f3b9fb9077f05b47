"""What is a flag that takes one value or a list, and how is its text read?"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Read = Callable[[str, str], Any]
"""Flag and one value's text → the value. Raises InputError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One flag, which is one axis of the question."""

    name: str
    field: str
    """Of `Properties`."""
    read: Read
    metavar: str
    help: str
    is_switch: bool = False
    """`--lora` alone is `--lora yes`."""


def read_name(flag: str, text: str) -> str:  # noqa: ARG001
    return text


def read_count(flag: str, text: str) -> int:
    from broadgauge.specs.errors import InputError

    digits = text.replace("_", "")
    if not digits.isdigit() or len(digits) > 12:
        raise InputError(f"{flag} {text}: not a whole number", hint=f"{flag} 2,4,8")
    return int(digits)


def read_number(flag: str, text: str) -> float:
    from broadgauge.specs.errors import InputError

    try:
        return float(text)
    except ValueError:
        raise InputError(f"{flag} {text}: not a number", hint=f"{flag} 1,2,4") from None


def read_ratio(flag: str, text: str) -> float:
    """`10%` or `0.1` → 0.1. Raises InputError."""
    from broadgauge.specs.errors import InputError

    number, percent, rest = text.strip().partition("%")
    try:
        ratio = float(number) / (100 if percent else 1)
    except ValueError:
        ratio = -1.0
    if rest or not 0 < ratio < 10:
        raise InputError(f"{flag} {text}: not a share above 0", hint=f"{flag} 10%")
    return ratio


def _parsed(parse: Callable[[object], object], flag: str, text: str, example: str) -> object:
    """As an experiment's key is read; nothing need be in quotes here. Raises InputError."""
    from broadgauge.specs.errors import InputError

    try:
        return parse(text)
    except ValueError as error:
        reason = str(error).replace(" in quotes", "")
        raise InputError(f"{flag} {text}: {reason}", hint=f"{flag} {example}") from None


def read_time_s(flag: str, text: str) -> float:
    from broadgauge.specs.errors import InputError
    from broadgauge.specs.units import parse_time_s

    seconds = _parsed(parse_time_s, flag, text, "20ms")
    if not isinstance(seconds, float) or not 0 <= seconds < 1e6:
        raise InputError(f"{flag} {text}: not a time of a step", hint=f"{flag} 20ms")
    return seconds


def read_long_time_s(flag: str, text: str) -> float:
    from broadgauge.specs.errors import InputError
    from broadgauge.specs.units import parse_time_s

    seconds = _parsed(parse_time_s, flag, text, "24h")
    if not isinstance(seconds, float) or not 0 < seconds < 1e10:
        raise InputError(f"{flag} {text}: not a time above 0", hint=f"{flag} 24h")
    return seconds


def read_size_bytes(flag: str, text: str) -> float:
    from broadgauge.specs.errors import InputError
    from broadgauge.specs.units import parse_size_bytes

    size = _parsed(parse_size_bytes, flag, text, "150kB")
    if not isinstance(size, int) or size <= 0:
        raise InputError(f"{flag} {text}: not a size above 0", hint=f"{flag} 150kB")
    return float(size)


def read_yes(flag: str, text: str) -> bool:
    from broadgauge.specs.errors import InputError

    if text not in ("yes", "no"):
        raise InputError(f"{flag} {text}: it is yes or no", hint=f"{flag}, or {flag} yes,no")
    return text == "yes"


def read_no(flag: str, text: str) -> bool:
    return not read_yes(flag, text)


def one_of(*known: str) -> Read:
    def read(flag: str, text: str) -> str:
        from broadgauge.specs.base import did_you_mean
        from broadgauge.specs.errors import InputError

        if text not in known:
            raise InputError(f"{flag} {text}: not known", hint=did_you_mean(text, known))
        return text

    return read


def add_flags_of(group: Any, flags: Sequence[Flag]) -> None:
    """Declares them, on a parser or a group of one."""
    for flag in flags:
        alone: dict[str, Any] = {"nargs": "?", "const": "yes"} if flag.is_switch else {}
        group.add_argument(
            flag.name, dest=f"property_{flag.field}", metavar=flag.metavar, help=flag.help, **alone
        )


def read_values(options: argparse.Namespace, flags: Sequence[Flag]) -> dict[str, Sequence[Any]]:
    """Field → values of what was asked. Raises InputError."""
    from broadgauge.specs.errors import InputError

    properties: dict[str, Sequence[Any]] = {}
    for flag in flags:
        text = getattr(options, f"property_{flag.field}")
        if text is None:
            continue
        words = [word.strip() for word in text.split(",")]
        if not all(words):
            raise InputError(f"{flag.name} {text}: an empty item", hint=f"{flag.name} a,b,c")
        properties[flag.field] = list(dict.fromkeys(flag.read(flag.name, word) for word in words))
    return properties
