"""Where does a prepared set lie, and is it there already?"""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

from broadgauge.messages.prepared_set import (
    DESCRIPTION,
    FORMAT,
    PreparedSet,
    PreparedSetError,
    check_content,
    read_prepared_set,
)
from broadgauge.specs.errors import InputError


def cache_folder() -> Path:
    """`data` in BROADGAUGE_CACHE, else in `broadgauge` of the user's cache, which XDG_CACHE_HOME
    names where it is absolute (XDG)."""
    if named := os.environ.get("BROADGAUGE_CACHE"):
        return Path(named).absolute() / "data"
    told = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        home = told if told.is_absolute() else Path.home() / ".cache"
    except RuntimeError as error:  # neither HOME nor a user of this number
        raise InputError(
            "no cache: this user has no home folder", hint="--out FOLDER, or BROADGAUGE_CACHE"
        ) from error
    return home / "broadgauge" / "data"


def key_of(facts: Mapping[str, object]) -> str:
    """A hash of everything that decides what the set holds, and of the format."""
    text = json.dumps({"format": FORMAT, **facts}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def place_of(out: Path | None, key: str) -> Path:
    """The folder that is asked for, else the one of the cache with the key as name."""
    return cache_folder() / key if out is None else out.absolute()


def set_there(final: Path, key: str) -> PreparedSet | None:
    """The same set, made before and unchanged since; None: the folder can be made.

    Raises InputError where something else is in the way: it is not written over.
    """
    try:
        if not final.exists() or (final.is_dir() and not any(final.iterdir())):
            return None
        is_set = (final / DESCRIPTION).is_file()
    except OSError as error:
        raise InputError(
            f"the place of the set, `{final}`, can't be read: {error.strerror or error}",
            hint="--out FOLDER names another",
        ) from error
    if not is_set:
        raise InputError(f"`{final}` is there, and is no prepared set",
                         hint="--out takes a folder that is not there yet")  # fmt: skip
    try:
        found = read_prepared_set(final)
        if found.key == key:
            check_content(final, found)
            return found
    except PreparedSetError as error:
        raise InputError(str(error), hint=f"rm -r {final}") from error
    raise InputError(
        f"`{final}` holds another prepared set ({found.source})",
        hint="name another folder, or leave --out out: the cache keeps both",
    )
