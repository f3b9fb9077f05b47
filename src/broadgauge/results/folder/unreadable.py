"""Why can't this version read what is stored? One sentence: the place, the value, what is wrong."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

Place = tuple[str | int, ...]

HINT = "was it written by a newer Broadgauge (install that version), or changed by hand?"
_MOST_CHARACTERS = 60
_ONE_OF_A_LIST = ("enum", "literal_error", "union_tag_invalid", "union_tag_not_found")


def why_unreadable(error: Exception, stored: object = None) -> str:
    """`cases.0.workload.kind: `storage` is not known to this version`.

    `stored` is what was validated: with it the place is that of the file, without the branches of
    unions that pydantic counts as places.
    """
    if not isinstance(error, ValidationError):
        return str(error).splitlines()[0]
    first = error.errors()[0]
    place = place_of(first, stored)
    words = first["msg"].removeprefix("Value error, ")
    if first["type"] in _ONE_OF_A_LIST:
        place, value = _choice(place, first)
        words = f"`{_short(value)}` is not known to this version"
    elif first["type"] != "missing" and not isinstance(first["input"], (dict, list)):
        words = f"{words}, not `{_short(first['input'])}`"
    name = ".".join(str(part) for part in place)
    return f"{name}: {words}" if name else words


def place_of(detail: ErrorDetails, stored: object) -> Place:
    """Where in the file is what an error is about? A union's branch in its place is no key."""
    ends = list(_readings(stored, detail["loc"]))
    wanted = detail["input"]
    fitting = (place for place, end in ends if end is wanted or end == wanted)
    place = next(fitting, ends[0][0])
    is_a_key_missing = detail["type"] == "missing" and detail["loc"]
    return (*place, detail["loc"][-1]) if is_a_key_missing else place


def _readings(stored: object, location: Place) -> Iterator[tuple[Place, object]]:
    """Each part may be a key of what stands there, or the branch of a union: `command` is both."""
    if not location:
        yield (), stored
        return
    part, rest = location[0], location[1:]
    has_key = isinstance(stored, dict) and part in stored
    if has_key or (isinstance(stored, list) and isinstance(part, int) and part < len(stored)):
        inside: Any = stored
        yield from (((part, *place), end) for place, end in _readings(inside[part], rest))
    yield from _readings(stored, rest)


def _choice(place: Place, detail: ErrorDetails) -> tuple[Place, object]:
    """Of a union the key that tells its members apart."""
    context: Mapping[str, Any] = detail.get("ctx", {})
    if detail["type"].startswith("union_tag"):
        return (*place, str(context.get("discriminator", "")).strip("'")), context.get("tag")
    return place, detail["input"]


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= _MOST_CHARACTERS else f"{text[: _MOST_CHARACTERS - 1]}…"
