"""How does a frozen dataclass become JSON, and come back?

`encode` gives what `json.dumps` takes; a `Decoder` takes what `json.loads` gives, ignores keys that
it does not know, and says of a wrong value where it stands: `task.model.layers: expected an
integer, got 'four'`.

A field may be of: str, int, float, bool, None, a Literal, an Enum, a dataclass, `tuple[X, ...]`,
`tuple[X, Y]`, `dict[str, X]` (or by an Enum), `dict[str, Any]` (any object, as it came), and unions
of these.
Dataclasses of a union are told apart by their `type`, then by their `kind`: fields whose annotation
is a Literal of one word.
"""

import math
import types
import typing
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Generic, Literal, TypeVar, Union

T = TypeVar("T")
JsonObject = dict[str, Any]
Decode = Callable[[Any], Any]

TAGS = ("type", "kind")
_PLAIN = frozenset((str, int, float, bool, type(None)))
_SHOWN_CHARACTERS = 60


class DecodeError(ValueError):
    """A value that is not what its place asks for."""

    def __init__(self, problem: str, place: str = "", got: str = "") -> None:
        super().__init__(problem, place, got)
        self.problem = problem
        self.place = place
        self.got = got
        """The value, as it is shown; empty where there is none."""

    def inside(self, outer: str) -> "DecodeError":
        """The same, seen from one level further out."""
        return DecodeError(self.problem, outer + self.place, self.got)

    @property
    def without_value(self) -> str:
        """In words, where the value may be a secret."""
        place = self.place.removeprefix(".")
        return f"{place}: {self.problem}" if place else self.problem

    def __str__(self) -> str:
        return f"{self.without_value}, got {self.got}" if self.got else self.without_value


def encode(value: Any) -> Any:
    """What json.dumps takes: dataclasses are objects, tuples lists, members of enums their value.

    Raises TypeError for anything else.
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is tuple or kind is list:
        return list(value) if set(map(type, value)) <= _PLAIN else [encode(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, dict):
        return {encode(name): encode(item) for name, item in value.items()}
    if not is_dataclass(kind):
        raise TypeError(f"a {kind.__name__} has no place in a message: {value!r}")
    return {name: encode(getattr(value, name)) for name in _field_names(kind)}


@cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


class Decoder(Generic[T]):
    """Reads values of one type. Made once: making it reads the type's annotations."""

    def __init__(self, form: Any) -> None:
        """`form`: a dataclass, or any other type that the module's docstring names."""
        self._decode = _decoder(form)

    def __call__(self, value: Any) -> T:
        """Raises DecodeError."""
        decoded: T = self._decode(value)
        return decoded


def decode(form: type[T], value: Any) -> T:
    """Read one value of a dataclass. Raises DecodeError."""
    return Decoder[T](form)(value)


@cache
def _decoder(form: Any) -> Decode:
    origin = typing.get_origin(form)
    if origin is not None:
        return _composed(origin, typing.get_args(form), form)
    if form in _SCALARS:
        return _SCALARS[form]
    if isinstance(form, type) and issubclass(form, Enum):
        return _enum(form)
    if isinstance(form, type) and is_dataclass(form):
        return _dataclass(form)
    raise TypeError(f"no message can hold {form!r}")


def _composed(origin: Any, arguments: tuple[Any, ...], form: Any) -> Decode:
    if origin is Literal:
        return _literal(arguments)
    if origin is tuple:
        return _tuple(arguments)
    if origin is dict:
        return _dict(*arguments)
    if origin is Union or origin is types.UnionType:
        return _union(arguments)
    raise TypeError(f"no message can hold {form!r}")


def _expected(what: str, value: Any) -> DecodeError:
    shown = repr(value)
    if len(shown) > _SHOWN_CHARACTERS:
        shown = shown[:_SHOWN_CHARACTERS] + "…"
    return DecodeError(f"expected {what}", got=shown)


def _text(value: Any) -> str:
    if type(value) is not str:
        raise _expected("a text", value)
    return value


def _integer(value: Any) -> int:
    if type(value) is not int:
        raise _expected("an integer", value)
    return value


def _number(value: Any) -> float:
    if type(value) is float and math.isfinite(value):
        return value
    if type(value) is int:
        try:
            return float(value)
        except OverflowError:
            pass
    raise _expected("a finite number", value)


def _boolean(value: Any) -> bool:
    if type(value) is not bool:
        raise _expected("true or false", value)
    return value


def _nothing(value: Any) -> None:
    if value is not None:
        raise _expected("null", value)


_SCALARS: dict[Any, Decode] = {
    Any: lambda value: value,
    str: _text,
    int: _integer,
    float: _number,
    bool: _boolean,
    type(None): _nothing,
}


def _literal(words: tuple[Any, ...]) -> Decode:
    known = {(type(word), word) for word in words}
    what = " or ".join(repr(word) for word in words)

    def read(value: Any) -> Any:
        if not isinstance(value, (str, int, bool)) or (type(value), value) not in known:
            raise _expected(what, value)
        return value

    return read


def _enum(form: type[Enum]) -> Decode:
    members = {member.value: member for member in form}
    what = " or ".join(repr(value) for value in members)

    def read(value: Any) -> Enum:
        if not isinstance(value, str) or value not in members:
            raise _expected(what, value)
        return members[value]

    return read


def _tuple(arguments: tuple[Any, ...]) -> Decode:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return _sequence(_decoder(arguments[0]))
    items = tuple(_decoder(argument) for argument in arguments)

    def read(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, (list, tuple)) or len(value) != len(items):
            raise _expected(f"a list of {len(items)}", value)
        return tuple(
            _read_item(item, number, part)
            for number, (item, part) in enumerate(zip(items, value, strict=True))
        )

    return read


def _sequence(item: Decode) -> Decode:
    def read(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, (list, tuple)):
            raise _expected("a list", value)
        if item is _number and set(map(type, value)) <= {float} and all(map(math.isfinite, value)):
            return tuple(value)  # the long ones: seconds of iterations
        try:
            return tuple(map(item, value))
        except DecodeError:
            # Counting costs time, which only a wrong value takes.
            return tuple(_read_item(item, number, part) for number, part in enumerate(value))

    return read


def _read_item(item: Decode, number: int, part: Any) -> Any:
    try:
        return item(part)
    except DecodeError as error:
        raise error.inside(f"[{number}]") from None


def _dict(name_form: Any, form: Any) -> Decode:
    key, item = _decoder(name_form), _decoder(form)

    def read(value: Any) -> JsonObject:
        if not isinstance(value, dict):
            raise _expected("an object", value)
        return {key(name): _read_key(item, name, part) for name, part in value.items()}

    return read


def _read_key(item: Decode, name: str, part: Any) -> Any:
    try:
        return item(part)
    except DecodeError as error:
        raise error.inside(f".{name}") from None


def _dataclass(form: type) -> Decode:
    hints = typing.get_type_hints(form)
    plan = [
        (
            field.name,
            _decoder(hints[field.name]),
            field.default is MISSING and field.default_factory is MISSING,
        )
        for field in fields(form)
    ]

    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            raise _expected(f"an object ({form.__name__})", value)
        given: JsonObject = {}
        for name, item, is_required in plan:
            if name in value:
                given[name] = _read_key(item, name, value[name])
            elif is_required:
                raise DecodeError(f"`{name}` is missing ({form.__name__})")
        return form(**given)

    return read


def _union(arguments: tuple[Any, ...]) -> Decode:
    """By the tags where dataclasses are among them; of plain values the first that takes it."""
    tagged = [form for form in arguments if is_dataclass(form)]
    others = [_decoder(form) for form in arguments if not is_dataclass(form)]
    by_tag = _by_tag(tagged)
    what = " or ".join(getattr(form, "__name__", str(form)) for form in arguments)

    def read(value: Any) -> Any:
        if by_tag is not None and isinstance(value, dict):
            return by_tag(value)
        for item in others:
            try:
                return item(value)
            except DecodeError:
                continue
        raise _expected(what, value)

    return read


def _by_tag(forms: list[Any], tags: tuple[str, ...] = TAGS) -> Decode | None:
    """Which of these dataclasses is it? Told by the first tag that tells some of them apart."""
    if not forms:
        return None
    if len(forms) == 1:
        return _decoder(forms[0])
    if not tags:
        names = ", ".join(form.__name__ for form in forms)
        raise TypeError(f"nothing tells these apart in a message: {names}")
    tag, *rest = tags
    grouped: dict[Any, list[Any]] = {}
    for form in forms:
        grouped.setdefault(_tag_of(form, tag), []).append(form)
    if set(grouped) == {None}:
        return _by_tag(forms, tuple(rest))
    if None in grouped:
        raise TypeError(f"{grouped[None][0].__name__} has no `{tag}`, and the others have one")
    readers = {word: _by_tag(group, tuple(rest)) for word, group in grouped.items()}
    what = " or ".join(repr(word) for word in readers)

    def read(value: JsonObject) -> Any:
        word = value.get(tag)
        reader = readers.get(word) if isinstance(word, str) else None
        if reader is None:
            raise _expected(what, word).inside(f".{tag}")
        return reader(value)

    return read


def _tag_of(form: Any, tag: str) -> str | None:
    """The one word that this field of the dataclass can be; None: it is no tag."""
    hint = typing.get_type_hints(form).get(tag)
    words = typing.get_args(hint) if typing.get_origin(hint) is Literal else ()
    return words[0] if len(words) == 1 else None
