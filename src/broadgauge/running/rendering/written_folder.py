"""How do rendered files get into a folder, and nobody else's are lost?

A file of ours beside them lists what was written, with a hash of each: only these are replaced or
removed when they are rendered again, and only as long as nobody has changed them. That file may
come from somebody else, with a checkout: it can name nothing outside of its folder.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from broadgauge.specs.errors import InputError

MARKER = ".broadgauge-rendered"
"""JSON. Without the extension: kubectl takes each `.json` of a folder for a manifest."""


def write_rendered(
    texts: Mapping[str, str],
    folder: Path,
    what: str,
    *,
    is_kept: Callable[[str], bool] | None = None,
) -> tuple[Path, ...]:
    """All files, by path, and none from an earlier time that is not rendered any more: gives those
    that it removed.

    `what` they are of: a folder holds the files of one. `is_kept`: of a path of an earlier time,
    does it stay although it is not rendered now? Raises InputError.
    """
    contents = {path: text.encode() for path, text in texts.items()}
    try:
        earlier, known = _known(folder)
        _refuse_foreign(folder, known)
        if earlier not in (None, what):
            raise InputError(
                f"`{folder}` holds the files of {earlier}, which would be removed",
                hint="--out names a folder of its own",
            )
        kept = {
            path: mark
            for path, mark in known.items()
            if path not in contents and is_kept is not None and is_kept(path)
        }
        for path, data in contents.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        marks = kept | {path: _hash(data) for path, data in contents.items()}
        (folder / MARKER).write_text(json.dumps({"of": what, "files": marks}, indent=2) + "\n")
        removed = sorted(known.keys() - marks.keys())
        for path in removed:
            (folder / path).unlink(missing_ok=True)
            _remove_empty(folder / path, folder)
        return tuple(folder / path for path in removed)
    except OSError as error:
        raise InputError(f"`{folder}` can't be written: {error.strerror or error}") from error


def _remove_empty(path: Path, folder: Path) -> None:
    """Folders that held nothing else."""
    for parent in path.parents:
        if parent == folder or any(parent.iterdir()):
            return
        parent.rmdir()


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _known(folder: Path) -> tuple[str | None, dict[str, str]]:
    """What an earlier rendering was of, and has written; None: none was here. Raises InputError."""
    marker = folder / MARKER
    if not marker.is_symlink() and not marker.exists():
        return None, {}
    try:
        if not _is_plain(marker):
            raise ValueError("it is no plain file")
        found = json.loads(marker.read_bytes())
        what = str(found["of"])
        known = {str(path): str(value) for path, value in found["files"].items()}
        for path in known:
            _check_inside(path)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            f"`{marker}` is not as `broadgauge render` wrote it, nothing was changed: {error}",
            hint="name another folder",
        ) from error
    return what, known


def _check_inside(path: str) -> None:
    """Raises ValueError for what is no plain path below the folder."""
    plain = PurePosixPath(path)
    is_inside = plain.parts and not plain.is_absolute() and ".." not in plain.parts
    if not is_inside or str(plain) != path or "\0" in path or path == MARKER:
        raise ValueError(f"it names {path!r}, which is no file below this folder")


def _is_plain(path: Path) -> bool:
    """Neither a link nor a pipe or device, which reading would wait for."""
    return path.is_file() and not path.is_symlink()


def _refuse_foreign(folder: Path, known: Mapping[str, str]) -> None:
    """Raises InputError for a file that we did not write, or that was changed since."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise InputError(f"`{folder}` is no folder")
    for path in _files(folder):
        name = path.relative_to(folder).as_posix()
        if name == MARKER:
            continue
        if name not in known:
            raise InputError(
                f"`{path}` was not written by `broadgauge render`, and is kept",
                hint="--out names a new folder, or one of its own",
            )
        if not _is_plain(path) or _hash(path.read_bytes()) != known[name]:
            raise InputError(
                f"`{path}` was changed since it was rendered, and is kept",
                hint="change the experiment instead, or render into another folder",
            )


def _files(folder: Path) -> Iterator[Path]:
    """Whatever is no folder, links too."""
    if folder.is_dir():
        for path in sorted(folder.rglob("*")):
            if path.is_symlink() or not path.is_dir():
                yield path
