"""What is wrong with a value of a file, in words that its writer knows?

pydantic names Python's types and its own; a file has numbers, texts, lists and mappings.
"""

import re
from collections.abc import Mapping
from typing import Any

from pydantic_core import ErrorDetails

from broadgauge.specs.base import NAME_PATTERN, did_you_mean

MOST_SHOWN = 60
"""Characters of a value."""
MOST_CHOICES = 12
"""That a hint lists."""

_TAKES = {
    "float": "a number",
    "int": "a whole number",
    "string": "a text",
    "bool": "`true` or `false`",
    "tuple": "a list",
    "list": "a list",
    "set": "a list",
    "frozen_set": "a list",
    "dict": "a mapping of keys to values",
    "mapping": "a mapping of keys to values",
    "model": "a mapping of keys to values",
    "model_attributes": "a mapping of keys to values",
    "dataclass": "a mapping of keys to values",
    "finite_number": "a finite number",
}
_BOUNDS = {
    "greater_than": ("gt", "a number above {}"),
    "greater_than_equal": ("ge", "a number of {} or more"),
    "less_than": ("lt", "a number below {}"),
    "less_than_equal": ("le", "a number of {} or less"),
    "string_too_short": ("min_length", "a text of {} characters or more"),
    "string_too_long": ("max_length", "a text of {} characters or fewer"),
    "too_short": ("min_length", "a list of {} or more"),
    "too_long": ("max_length", "a list of {} or fewer"),
}
_PATTERNS: dict[str, tuple[str, str | None]] = {
    NAME_PATTERN: (
        "a name of at most 63 lower-case letters, digits, `-`, `_` and `.`, the first a letter or "
        "a digit",
        None,
    ),
    r"^(19|20)\d\d(-\d\d){0,2}$": ("a date", "`2026-11-21`, `2026-11` or `2026`"),
}


def value_problem(name: str, detail: ErrorDetails) -> tuple[str, str | None]:
    """What is wrong with the value of `name`, and a hint where there is one: for every kind of
    error but those of a key that is missing or unknown."""
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "placed":
        return context["message"], context["hint"]
    if kind == "value_error":  # a rule of ours, which says all
        return _of_ours(name, detail), None
    if kind == "literal_error":
        return _one_of(name, str(context["expected"]), detail["input"])
    takes, hint = _takes(kind, context)
    if takes is None:
        return f"`{name}` can't be {shown(detail['input'])}", None
    return f"`{name}` takes {takes}, not {shown(detail['input'])}", hint


def _takes(kind: str, context: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """In words, with a hint; None: pydantic's own, which no file of ours can bring about."""
    if kind == "string_pattern_mismatch":
        return _PATTERNS.get(context["pattern"], (None, None))
    if kind in _BOUNDS:
        return _bound(kind, context), None
    return _TAKES.get(re.sub(r"_(type|parsing|parsing_size|from_float)$", "", kind)), None


def shown(value: object) -> str:
    """`` `fast` `` as a file has it, or what it is where that is long."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}" if value else "an empty list"
    if value is None:
        return "nothing"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"`{text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 1] + '…'}`"


def _of_ours(name: str, detail: ErrorDetails) -> str:
    message = detail["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    return f"`{name}`: {message}" if detail["loc"] else message


def _one_of(name: str, expected: str, value: Any) -> tuple[str, str]:
    """pydantic lists the choices as `'a', 'b' or 'c'`."""
    choices = [each.strip(" '") for each in expected.replace(" or ", ",").split(",")]
    few = [*choices[:MOST_CHOICES], *(["…"] if len(choices) > MOST_CHOICES else [])]
    hint = did_you_mean(str(value), choices) or f"one of {', '.join(few)}"
    return f"`{name}` can't be {shown(value)}", hint


def _bound(kind: str, context: Mapping[str, Any]) -> str:
    key, words = _BOUNDS[kind]
    bound = context[key]
    return words.format(f"{bound:g}" if isinstance(bound, (int, float)) else bound)
