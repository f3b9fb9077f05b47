"""How do Python's values become those that questions are made of? One value, or several."""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from broadgauge.catalog.catalog import Catalog, load_catalog
from broadgauge.specs.base import did_you_mean
from broadgauge.specs.errors import InputError
from broadgauge.specs.units import parse_token_count

T = TypeVar("T")
OneOrMore: TypeAlias = T | Sequence[T]
"""`2`, or `[2, 4, 8]`."""
PathLike = str | os.PathLike[str]


def path_or_none(path: PathLike | None) -> Path | None:
    """Of an optional file."""
    return None if path is None else Path(path)


def catalog_of(given: Catalog | OneOrMore[PathLike] | None) -> Catalog:
    """A catalog, or files of it. Raises InputError as `load_catalog` does."""
    if isinstance(given, Catalog):
        return given
    several = [given] if isinstance(given, str | os.PathLike) else given or ()
    return load_catalog([Path(each) for each in several])


def values_of(name: str, given: object, read: Callable[[str, Any], object]) -> list[Any]:
    """Each value once, read. Raises InputError for none at all."""
    several = isinstance(given, Iterable) and not isinstance(given, str | bytes)
    found = list(given) if several and isinstance(given, Iterable) else [given]
    if not found:
        raise InputError(f"{name} is an empty list", hint="leave it out, or name a value")
    return list(dict.fromkeys(read(name, value) for value in found))


def text(name: str, value: object) -> str:
    """Raises InputError."""
    if not isinstance(value, str) or not value:
        raise InputError(f"{name}={value!r}: not a text")
    return value


def count(name: str, value: object) -> int:
    """A whole number, numpy's too. Raises InputError."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InputError(f"{name}={value!r}: not a whole number", hint=f"{name}=[2, 4, 8]")
    number: int = value.__index__()
    if not 0 <= number < 10**12:
        raise InputError(f"{name}={value!r}: not a number that can be")
    return number


def number(name: str, value: object) -> float:
    """Raises InputError."""
    if isinstance(value, bool | str) or not hasattr(value, "__float__"):
        raise InputError(f"{name}={value!r}: not a number")
    found = float(value)
    if not 0 <= found < float("inf"):
        raise InputError(f"{name}={value!r}: not a number from 0 on")
    return found


def token_count(name: str, value: object) -> int:
    """`300e9`, or `"300B"` as the command's flag takes it. Raises InputError."""
    try:
        found = parse_token_count(value if isinstance(value, str) else number(name, value))
    except ValueError:
        raise InputError(
            f"{name}={value!r}: no number of tokens", hint=f'{name}="300B", or {name}=300e9'
        ) from None
    assert isinstance(found, int)
    return found


def truth(name: str, value: object) -> bool:
    """Raises InputError."""
    if not isinstance(value, bool):
        raise InputError(f"{name}={value!r}: it is True or False")
    return value


def one_of(*known: str) -> Callable[[str, object], str]:
    """One of these words."""

    def read(name: str, value: object) -> str:
        if value not in known:
            hint = did_you_mean(str(value), known) or f"one of {', '.join(known)}"
            raise InputError(f"{name}={value!r}: not known", hint=hint)
        return str(value)

    return read
