"""How does one model or data set get into its folder, once?

It grows in `.NAME.part-KEY`, with which the next pod goes on after a kill: `downloads` has what
came of files, `whole` what is finished. When all of it is there, `whole` gets DONE and becomes
NAME; of two pods the first counts.
"""

import errno
import json
import shutil
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from broadgauge.agent.volume.archives import is_archive, unpack
from broadgauge.agent.volume.disk import sync_below, write_synced
from broadgauge.agent.volume.downloads import HttpStatusError, download
from broadgauge.agent.volume.hub import fetch_repository
from broadgauge.agent.volume.inside import path_inside
from broadgauge.agent.volume.links import check_link, is_done, make_link
from broadgauge.agent.volume.locks import held
from broadgauge.agent.volume.registry import SCHEME, fetch_artifact
from broadgauge.agent.volume.remote_files import PartialFolders
from broadgauge.agent.volume.rooms import OwnRoom, own_room
from broadgauge.agent.volume.telling import FetchError, LastingError, say, shown, who
from broadgauge.messages.prepare_order import DONE, AnyOrder, FetchOrder, PrepareOrder

AS_IT_WAS = "a file as it was"
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
Make = Callable[[Path], dict[str, Any]]
"""Makes it in the folder of unfinished things, as `whole`; gives what DONE says of it."""


def fetch(order: PrepareOrder, part: FetchOrder) -> None:
    """Raises FetchError and OSError."""
    what = f"{part.kind} {shown(part.source)}"

    def make(room: Path) -> dict[str, Any]:
        try:
            return _fetched(part, room)
        except LastingError as error:
            raise LastingError(f"{what}: {error}") from None
        except FetchError as error:
            raise FetchError(f"{what}: {error}") from None

    make_once(order, part, what, make)


def make_once(order: PrepareOrder, part: AnyOrder, what: str, make: Make) -> None:
    """Unless it is there. Raises FetchError and OSError."""
    place = Path(order.place(part))
    with _in_words(order.root):
        if not is_done(place):
            check_link(order, part)
            make_folder(Path(order.root))
            with held(place.with_name(f".{part.name}.lock")) as is_locked:
                if not is_done(place):
                    _make(order, part, what, make, is_locked=is_locked)
        say(f"{what} is there: {place}")
        make_link(order, part)


def make_folder(path: Path) -> None:
    """On the volume. Raises LastingError where this user may write nothing there, and OSError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except PermissionError as error:
        raise LastingError(
            f"{error.filename}: {error.strerror}: {who()} may not write this volume. "
            "`kubernetes.fs_group` gives it to a group that may, where the volume's driver can; "
            "`kubernetes.run_as_user` is another user"
        ) from None


@contextmanager
def _in_words(root: str) -> Iterator[None]:
    """What the volume can't do, no matter how often it is tried. Raises LastingError."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise LastingError(
                f"{error.filename or root}: {error.strerror}: the volume needs more room"
            ) from None
        if error.errno == errno.EROFS or isinstance(error, PermissionError):
            raise LastingError(
                f"{error.filename or root}: {error.strerror}: {who()} must be able to write there"
            ) from None
        raise


def _make(order: PrepareOrder, part: AnyOrder, what: str, make: Make, *, is_locked: bool) -> None:
    """Raises FetchError and OSError."""
    place = Path(order.place(part))
    if place.exists():
        raise LastingError(f"{place} is there, and was not made by this: remove it, or rename it")
    with own_room(place, is_locked=is_locked) as room:
        if room is not None:
            _make_in(room, place, part, what, make)


def _make_in(room: OwnRoom, place: Path, part: AnyOrder, what: str, make: Make) -> None:
    """Raises FetchError and OSError."""
    say(f"{'going on with' if room.is_again else 'fetching'} {what}")
    begun_s = time.monotonic()
    about, whole = make(room.path), room.whole
    if part.file is not None and not (whole / part.file).is_file():
        raise LastingError(f"{what} has no file {part.file!r}: it has {_some_files(whole)}")
    size_bytes = sum(path.stat().st_size for path in whole.rglob("*") if path.is_file())
    said = {"kind": part.kind, **about, "size_bytes": size_bytes}
    sync_below(whole)
    room.check()
    try:
        write_synced(whole / DONE, json.dumps(said, indent=2, sort_keys=True) + "\n")
        whole.rename(place)
    except OSError:
        if not is_done(place):  # where a volume has no locks another pod may be faster
            raise
    say(f"{what}: {size_bytes / 1e6:,.1f} MB in {time.monotonic() - begun_s:.1f} s")


def _some_files(folder: Path) -> str:
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    return ", ".join(names[:10]) or "none"


def _fetched(part: FetchOrder, room: Path) -> dict[str, Any]:
    """Raises FetchError and OSError."""
    source, whole, downloads = part.source, room / "whole", room / "downloads"
    about: dict[str, Any] = {"source": shown(source)}
    if source.startswith("/"):
        return about | {"form": _copied(Path(source), room)}
    rooms = PartialFolders(whole=whole, partials=downloads, version=room / "version")
    if source.startswith(SCHEME):
        return about | {"form": "an artifact's files", "digest": fetch_artifact(part, rooms)}
    if "://" not in source:
        commit = fetch_repository(part, rooms)
        return about | {"form": "files of the hub", "revision": part.revision, "commit": commit}
    try:
        url = urllib.parse.urlsplit(source)
    except ValueError:
        raise LastingError(f"{shown(source)} is no URL that can be asked for") from None
    if url.scheme == "file":
        return about | {"form": _copied(Path(urllib.request.url2pathname(url.path)), room)}
    name = Path(urllib.parse.unquote(url.path)).name or "file"
    came = path_inside(downloads if is_archive(name) else whole, name, "the URL's file")
    try:
        is_whole = download(source, came, downloads / ".partial", sha256=part.sha256)
    except HttpStatusError as error:
        raise (LastingError if error.is_lasting else FetchError)(str(error)) from None
    if not is_archive(name):
        return about | {"form": AS_IT_WAS}
    try:
        return about | {"form": _unpacked(came, whole)}
    except LastingError as error:
        came.unlink()  # no later Job is to find it broken again
        if is_whole:
            raise
        raise FetchError(f"{error}; its server says no length, and it may be cut") from None


def _unpacked(path: Path, whole: Path) -> str:
    """An archive's content. `path` itself stays: a pod that is killed meanwhile unpacks again."""
    shutil.rmtree(whole)  # what a killed pod had unpacked may end in half a file
    whole.mkdir()
    unpack(path, whole)
    return "unpacked"


def _copied(source: Path, room: Path) -> str:
    """Raises LastingError and OSError."""
    whole = room / "whole"
    if source.is_dir():
        if room.resolve().is_relative_to(source.resolve()):
            raise LastingError(f"{source} has what is fetched in it, and can't be copied there")
        _copy_folder(source, whole, frozenset())
        return "a copy of the folder"
    if not source.is_file():
        raise LastingError(f"{source}: no such file or folder in this pod")
    if is_archive(source.name):
        return _unpacked(source, whole)
    _copy(source, whole / source.name)
    return AS_IT_WAS


def _copy_folder(source: Path, target: Path, outer: frozenset[Path]) -> None:
    """With what its links lead to, as a cache of the hub's has them; never in a circle."""
    real = source.resolve()
    if real in outer:
        raise LastingError(f"{source} leads back to a folder that it lies in")
    target.mkdir(exist_ok=True)
    for path in sorted(source.iterdir()):
        if path.is_dir():
            _copy_folder(path, target / path.name, outer | {real})
        elif path.is_file():
            _copy(path, target / path.name)


def _copy(source: Path, target: Path) -> None:
    """Under another name until it is whole: what a killed pod had copied stays."""
    if target.exists():
        return
    growing = target.with_name(f".{target.name}.partial")
    shutil.copyfile(source, growing)
    growing.rename(target)
