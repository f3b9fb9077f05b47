"""Which run does the user mean: a folder, `last`, `last~1`, or the beginning of a run's name?"""

import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broadgauge.results.model import RunSummary

RUNS_FOLDER = "runs"
LAST = "last"
RUN_HELP = "a run folder, `last`, `last~1` (the one before), or how its name in runs/ begins"
"""What a command that takes a RUN says of it."""
_BACK = re.compile(rf"{LAST}(?:~([0-9]{{1,6}}))?")
_SHOWN_CHOICES = 4


def run_path(text: str, runs_folder: Path = Path(RUNS_FOLDER)) -> Path:
    """The folder of the run that is meant. Raises RunFolderError.

    A path that exists comes first, so that a folder named `last` is that folder. A path that is no
    run of `runs_folder` either is returned as it is: who reads it says what is wrong with it.
    """
    path = Path(text)
    back = _BACK.fullmatch(text)
    _check_form(text)
    if _exists(path) or (back is None and "/" in text):
        return path
    if back is not None:
        return _nth_last(int(back[1] or 0), runs_folder)
    return _beginning(text, runs_folder) or path


def is_run_folder(folder: Path) -> bool:
    """Is this one whole? The plan is written last."""
    return (folder / "plan.json").exists()


def is_relative_to_last(text: str) -> bool:
    """Is it `last` or `last~N`, and no folder of that name?"""
    return _BACK.fullmatch(text) is not None and not _exists(Path(text))


def newest_first(runs_folder: Path) -> list[Path]:
    """The run folders in this one; `last~N` is the one at place N.

    None of them where it is not there or is no folder; raises OSError where it can't be read. What
    goes meanwhile, and what can't be looked into, is left out.
    """
    try:
        found = sorted(runs_folder.iterdir())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return []
    changed_s: dict[Path, float] = {}
    for folder in found:
        with suppress(OSError):
            changed_s[folder] = (folder / "plan.json").stat().st_mtime
    return sorted(changed_s, key=lambda folder: changed_s[folder])[::-1]


def _check_form(text: str) -> None:
    """Raises RunFolderError for what can name no run."""
    from broadgauge.specs.errors import RunFolderError

    if not text:
        raise RunFolderError("the name of a run is empty", hint=RUN_HELP)
    if "\0" in text:
        raise RunFolderError(f"{text!r} can be no folder's name", hint=RUN_HELP)
    is_back = text.startswith(f"{LAST}~") and "/" not in text
    if is_back and _BACK.fullmatch(text) is None and not _exists(Path(text)):
        raise RunFolderError(
            f"{text}: behind `{LAST}~` stands how many runs back, a whole number from 0 on",
            hint=f"`{LAST}~1` is the run before the last; `broadgauge runs` lists them",
        )


def _exists(path: Path) -> bool:
    """A name that no file can have does not."""
    try:
        return path.is_symlink() or path.exists()
    except (OSError, ValueError):
        return False


def _nth_last(back: int, runs_folder: Path) -> Path:
    from broadgauge.results.folder.disk import telling
    from broadgauge.specs.errors import RunFolderError

    with telling("read", runs_folder):
        runs = newest_first(runs_folder)
    if not runs:
        raise RunFolderError(
            f"there is no run under {runs_folder}/", hint="begin with: broadgauge run quickstart"
        )
    if back >= len(runs):
        there = "is 1 run" if len(runs) == 1 else f"are {len(runs)} runs"
        oldest = LAST if len(runs) == 1 else f"{LAST}~{len(runs) - 1}"
        raise RunFolderError(
            f"there is no {LAST}~{back}: there {there} under {runs_folder}/",
            hint=f"the oldest is {oldest}; `broadgauge runs` lists them",
        )
    return runs[back]


def _beginning(text: str, runs_folder: Path) -> Path | None:
    """The one run whose name begins so, or is that. Raises RunFolderError where several do."""
    from broadgauge.results.folder.disk import telling
    from broadgauge.specs.errors import RunFolderError

    if not text:
        return None
    with telling("read", runs_folder):
        runs = newest_first(runs_folder)
    found = [path for path in runs if path.name.startswith(text)]
    exact = [path for path in found if path.name == text]
    if len(exact or found) <= 1:
        return next(iter(exact or found), None)
    shown = [path.name for path in found[:_SHOWN_CHOICES]]
    more = len(found) - len(shown)
    raise RunFolderError(
        f"{len(found)} runs begin with `{text}`: "
        + ", ".join(shown)
        + (f", and {more} more" if more else ""),
        hint=f"write more of the name; the newest is {shown[0]}",
    )


def read_summary(path: Path) -> "RunSummary":
    """The run of this folder, put together. Raises RunFolderError."""
    from broadgauge.results.summary import summarise_stored

    return summarise_stored(path)
