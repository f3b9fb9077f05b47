"""What stands at this place of a JSON file? Its type is checked, and an error names the place."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from broadgauge.specs.errors import InputError

MOST = 1e18
"""No figure that these programs print is larger: microseconds since 1970, bytes, rates."""
MOST_S = 4_102_444_800.0
"""Seconds from 1970 to 2100."""
_SHOWN_CHARACTERS = 60
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class JsonObject:
    """An object of a file, and where it stands."""

    values: Mapping[str, Any]
    place: str
    """`fio.json: jobs[0].read`, for messages."""

    def has(self, key: str) -> bool:
        """Is it there, and not null?"""
        return self.values.get(key) is not None

    def inside(self, key: str) -> "JsonObject":
        """Raises InputError, as all of these do."""
        value = self._value(key)
        if not isinstance(value, dict):
            self.refuse(key, value, "an object")
        return JsonObject(value, self._at(key))

    def objects(self, key: str) -> "list[JsonObject]":
        value = self._value(key)
        if not isinstance(value, list):
            self.refuse(key, value, "a list")
        for i, item in enumerate(value):
            if not isinstance(item, dict):
                self.refuse(f"{key}[{i}]", item, "an object")
        return [JsonObject(item, f"{self._at(key)}[{i}]") for i, item in enumerate(value)]

    def text(self, key: str) -> str:
        value = self._value(key)
        if not isinstance(value, str):
            self.refuse(key, value, "a text")
        return value

    def number(self, key: str, *, least: float = 0.0, most: float = MOST) -> float:
        """A finite number in these bounds."""
        value = self._value(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.refuse(key, value, "a number")
        if not (least <= value <= most):  # NaN, too
            self.refuse(key, value, f"a number from {least:g} to {most:g}")
        return float(value)

    def whole(self, key: str, *, least: int = 0) -> int:
        number = self.number(key, least=least)
        if not number.is_integer():
            self.refuse(key, number, "a whole number")
        return int(number)

    def maybe_number(self, key: str) -> float | None:
        """None: it is not there, or null."""
        return self.number(key) if self.has(key) else None

    def maybe_time_s(self, key: str, *, per_s: float = 1.0) -> float | None:
        """A duration, or a time since 1970, of which the file has so many a second."""
        return self.number(key, most=MOST_S * per_s) / per_s if self.has(key) else None

    def maybe_text(self, key: str) -> str | None:
        return self.text(key) if self.has(key) else None

    def _value(self, key: str) -> Any:
        if key not in self.values:
            raise InputError(
                f"{self._at(key)} is missing", hint="is the file whole, and not edited?"
            )
        return self.values[key]

    def _at(self, key: str) -> str:
        return f"{self.place}{'' if self.place.endswith(': ') else '.'}{key}"

    def refuse(self, key: str, value: object, wanted: str) -> NoReturn:
        """Raises InputError: this value is not what stands there."""
        try:
            shown = json.dumps(value, ensure_ascii=False)[:_SHOWN_CHARACTERS]
        except ValueError:  # an integer of thousands of digits
            shown = "a number of thousands of digits"
        raise InputError(
            f"{self._at(key)}: {shown} is not {wanted}",
            hint="the file must be as the program wrote it",
        )


@dataclass(frozen=True, slots=True)
class JsonDocument:
    """One JSON object of a file, which may hold several and text between them."""

    object: JsonObject
    line: int
    """From 1."""


def read_documents(text: str, name: str) -> Iterator[JsonDocument]:
    """Every object that begins a line, in order; other lines are passed over.

    Raises InputError for one that is cut or no JSON.
    """
    at, line = _next_object(text, 0), 1
    counted = 0
    while at is not None:
        line += text.count("\n", counted, at)
        counted = at
        value, end = _decoded(text, at, f"{name}:{line}")
        yield JsonDocument(
            JsonObject(value, f"{name}: " if not line - 1 else f"{name}:{line}: "), line
        )
        at = _next_object(text, end)


def begins_object(text: str) -> bool:
    """Is there a line that begins with `{`?"""
    return _next_object(text, 0) is not None


def _next_object(text: str, start: int) -> int | None:
    """Where the next line (or the rest of this one) begins with `{`."""
    at = start
    while at < len(text):
        end = text.find("\n", at)
        line = text[at : len(text) if end < 0 else end]
        if line.lstrip().startswith("{"):
            return at + len(line) - len(line.lstrip())
        if end < 0:
            return None
        at = end + 1
    return None


def _decoded(text: str, at: int, place: str) -> tuple[dict[str, Any], int]:
    try:
        value, end = _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as error:
        line_in_object = text.count("\n", at, error.pos)
        where = f" {line_in_object} lines on" if line_in_object else ""
        is_cut = not text[error.pos :].strip()
        what = "it ends there" if is_cut else f"{text[error.pos : error.pos + 20]!r}"
        raise InputError(
            f"{place}: the JSON that begins here is broken{where}: {error.msg}: {what}",
            hint="is the file cut, or was it written while the program ran?",
        ) from error
    except (RecursionError, ValueError) as error:
        raise InputError(f"{place}: the JSON that begins here can't be read: {error}") from error
    assert isinstance(value, dict)
    return value, end
