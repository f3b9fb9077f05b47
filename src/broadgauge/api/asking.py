"""How do Python's values become those that questions are made of? One value, or several."""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from broadgauge.catalog.catalog import Catalog, load_catalog
from broadgauge.results.run_path import run_path
from broadgauge.specs.base import did_you_mean
from broadgauge.specs.errors import InputError
from broadgauge.specs.units import parse_token_count

T = TypeVar("T")
OneOrMore: TypeAlias = T | Sequence[T]
"""`2`, or `[2, 4, 8]`."""
PathLike = str | os.PathLike[str]
MOST_SHOWN = 60
"""Characters of a value in an error."""


def path_of(name: str, given: object) -> Path:
    """Of a file or folder. Raises InputError."""
    if isinstance(given, str | os.PathLike) and isinstance(os.fspath(given), str):
        return Path(given)
    raise InputError(f"{name}={shown(given)}: not a path", hint=f'{name}="…", or a pathlib.Path')


def path_or_none(name: str, given: PathLike | None) -> Path | None:
    """Of an optional file. Raises InputError."""
    return None if given is None else path_of(name, given)


def run_of(name: str, given: object, runs_folder: object) -> Path:
    """The folder of a run. Raises InputError; RunFolderError where none or several are meant."""
    if not isinstance(given, str | os.PathLike) or not isinstance(os.fspath(given), str):
        hint = f'{name}="last", a run\'s folder, how its name begins, or a run'
        raise InputError(f"{name}={shown(given)}: not a run", hint=hint)
    return run_path(os.fspath(given), path_of("runs_folder", runs_folder))


def shown(value: object) -> str:
    """As Python writes it, cut where it is long."""
    words = repr(value)
    return words if len(words) <= MOST_SHOWN else f"{words[:MOST_SHOWN]}…"


def catalog_of(given: Catalog | OneOrMore[PathLike] | None) -> Catalog:
    """A catalog, or files of it. Raises InputError as `load_catalog` does."""
    if isinstance(given, Catalog):
        return given
    is_one = isinstance(given, str | bytes | os.PathLike) or not isinstance(given, Iterable)
    several: Any = () if given is None else [given] if is_one else given
    return load_catalog([path_of("catalog", each) for each in several])


def values_of(name: str, given: object, read: Callable[[str, Any], object]) -> list[Any]:
    """Each value once, read. Raises InputError for none at all."""
    several = isinstance(given, Iterable) and not isinstance(given, str | bytes)
    several = several and getattr(given, "ndim", 1) != 0  # numpy's array of one number
    found = list(given) if several and isinstance(given, Iterable) else [given]
    if not found:
        raise InputError(f"{name} is an empty list", hint="leave it out, or name a value")
    return list(dict.fromkeys(read(name, value) for value in found))


def text(name: str, value: object) -> str:
    """Raises InputError."""
    if not isinstance(value, str) or not value:
        raise InputError(f"{name}={shown(value)}: not a text")
    return value


def count(name: str, value: object) -> int:
    """A whole number, numpy's too. Raises InputError."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InputError(f"{name}={shown(value)}: not a whole number", hint=f"{name}=[2, 4, 8]")
    number: int = value.__index__()
    if not 0 <= number < 10**12:
        raise InputError(f"{name}={shown(value)}: not a number that can be")
    return number


def number(name: str, value: object) -> float:
    """Raises InputError."""
    if isinstance(value, bool | str) or not hasattr(value, "__float__"):
        raise InputError(f"{name}={shown(value)}: not a number")
    try:
        found = float(value)
    except OverflowError:
        found = float("inf")
    if not 0 <= found < float("inf"):
        raise InputError(f"{name}={shown(value)}: not a number from 0 on")
    return found


def token_count(name: str, value: object) -> int:
    """`300e9`, or `"300B"` as the command's flag takes it. Raises InputError."""
    try:
        found = parse_token_count(value if isinstance(value, str) else number(name, value))
    except ValueError:
        raise InputError(
            f"{name}={shown(value)}: no number of tokens", hint=f'{name}="300B", or {name}=300e9'
        ) from None
    assert isinstance(found, int)
    return found


def ratio(name: str, value: object, example: str) -> float:
    """A share above 0 and below 1. Raises InputError."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < float(value) < 1:  # type: ignore[arg-type]
        raise InputError(f"{name}={shown(value)}: not a share above 0", hint=f"{name}={example}")
    return float(value)  # type: ignore[arg-type]


def truth(name: str, value: object) -> bool:
    """Raises InputError."""
    if not isinstance(value, bool):
        raise InputError(f"{name}={shown(value)}: it is True or False")
    return value


def one_of(*known: str) -> Callable[[str, object], str]:
    """One of these words."""

    def read(name: str, value: object) -> str:
        if value not in known:
            hint = did_you_mean(str(value), known) or f"one of {', '.join(known)}"
            raise InputError(f"{name}={shown(value)}: not known", hint=hint)
        return str(value)

    return read
