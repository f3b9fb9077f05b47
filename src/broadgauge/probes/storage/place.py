"""Which folder on the storage is our own, is there space for what we write, and is it gone after?

Everything is written below `broadgauge-storage-<token>`, which a marker file says is ours. A folder
of that name that holds something else is refused; what others put into ours stays.
"""

import contextlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from broadgauge.messages.storage import ObjectPlace, StoragePlace
from broadgauge.probes.storage.objects import key_of, open_store, within_prefix
from broadgauge.probes.trial import RefusedError
from broadgauge.wording.amounts import show_size

MARKER = ".broadgauge-storage"
MARKING_ATTEMPTS = 3
OUR_FOLDERS = ("raw", "batches", "models", "checkpoints")
"""What we write below our own folder, and all that is removed from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPlace:
    """Our own folder, or prefix of objects, on a storage: `folder` or `objects` is set."""

    place: StoragePlace
    token: str
    folder: str | None
    objects: ObjectPlace | None
    behind: ObjectPlace | None
    """Our own prefix of the bucket that `folder` shows."""

    @property
    def label(self) -> str:
        """`bucket (/mnt/bucket)`, for messages."""
        return label_of(self.place)

    def path(self, name: str) -> Path:
        """Of a file in our folder. Raises RefusedError for a store without a mount."""
        if self.folder is None:
            raise RefusedError(f"{self.label} is no folder: {name} has no path there")
        return Path(self.folder, name)


def label_of(place: StoragePlace) -> str:
    if place.folder is not None:
        return f"{place.name} ({place.folder})"
    where = "" if place.objects is None else f" (s3://{key_of(place.objects, '')})"
    return place.name + where


def claim(place: StoragePlace, token: str) -> OwnPlace:
    """Makes `broadgauge-storage-<token>` there, on every rank with the same token.

    Raises RefusedError where that is somebody else's, OSError as the storage says.
    """
    name = f"broadgauge-storage-{token}"
    if place.folder is not None:
        _claim_folder(place, Path(place.folder, name), token)
        return OwnPlace(
            place=place,
            token=token,
            folder=str(Path(place.folder, name)),
            objects=None,
            behind=None if place.behind is None else within_prefix(place.behind, name),
        )
    if place.objects is None:
        raise RefusedError(f"storage {place.name} has neither a folder nor a bucket")
    objects = within_prefix(place.objects, name)
    _claim_prefix(place, objects, token)
    return OwnPlace(place=place, token=token, folder=None, objects=objects, behind=None)


def _claim_folder(place: StoragePlace, folder: Path, token: str) -> None:
    if not Path(place.folder or "").is_dir():
        raise RefusedError(
            f"{label_of(place)}: there is no such folder on this node\n"
            "hint: mount it on every node, or correct the storage's `path`"
        )
    marker = folder / MARKER
    try:
        folder.mkdir()
    except FileExistsError:  # of another rank of ours, or not
        # Listed first: that rank may make the marker meanwhile.
        others = _names_in(folder)
        if others and not marker.exists():
            raise RefusedError(f"{folder} is not empty and not ours: it is not touched") from None
    if marker.exists() and marker.read_text() not in {token, ""}:
        raise RefusedError(f"{folder} belongs to another run: it is not touched")
    _mark(marker, token)


def _mark(marker: Path, token: str) -> None:
    """A mounted bucket forgets an empty folder when it lists the bucket once more, as it does when
    another node has just put something there: the folder is made again."""
    for _ in range(MARKING_ATTEMPTS - 1):
        with contextlib.suppress(FileNotFoundError):
            marker.write_text(token)
            return
        marker.parent.mkdir(exist_ok=True)
    marker.write_text(token)


def _names_in(folder: Path) -> list[str]:
    """But the marker's. A mounted bucket has no folder until something is in it."""
    try:
        return [path.name for path in folder.iterdir() if path.name != MARKER]
    except FileNotFoundError:
        return []


def _claim_prefix(place: StoragePlace, objects: ObjectPlace, token: str) -> None:
    store, marker = open_store(objects), key_of(objects, MARKER)
    bucket = store.exists(objects.bucket)
    if not bucket:
        raise RefusedError(
            f"{label_of(place)}: there is no bucket {objects.bucket!r}\n"
            "hint: make it, or correct the storage's `url` and `endpoint`"
        )
    others = [key for key in store.find(key_of(objects, "")) if key != marker]
    if others and not store.exists(marker):
        raise RefusedError(f"s3://{key_of(objects, '')} holds objects and is not ours")
    store.pipe_file(marker, token.encode())


def check_space(own: OwnPlace, num_bytes: int) -> None:
    """Raises RefusedError where the file system has less space than is going to be written."""
    if own.folder is None:
        return
    state = os.statvfs(own.folder)
    free = state.f_bavail * state.f_frsize
    if num_bytes > free:
        raise RefusedError(
            f"{own.label} has {show_size(free)} of free space, {show_size(num_bytes)} are to be "
            "written\nhint: free some, or make the workload's sizes smaller"
        )


def remove_part(own: OwnPlace, name: str) -> None:
    """Removes one of our folders, or one file in them; it is no error when it is gone."""
    if name.split("/", maxsplit=1)[0] not in OUR_FOLDERS:
        raise ValueError(f"{name!r} is not in one of {OUR_FOLDERS}")
    if own.folder is not None:
        _remove_path(own.path(name))
        return
    assert own.objects is not None
    store, key = open_store(own.objects), key_of(own.objects, name)
    with contextlib.suppress(FileNotFoundError):
        store.rm(key, recursive=True)


def _remove_path(path: Path) -> None:
    """Several ranks may remove the same folder at once."""
    if path.is_symlink() or path.is_file():
        path.unlink(missing_ok=True)
        return
    shutil.rmtree(path, onerror=_unless_gone)


def _unless_gone(_: object, __: str, error: tuple[object, BaseException, object]) -> None:
    if not isinstance(error[1], FileNotFoundError):
        raise error[1]


def release(own: OwnPlace) -> str | None:
    """Removes what is ours; other ranks may do so at the same time. Gives what stays and why, or
    None."""
    for name in OUR_FOLDERS:
        remove_part(own, name)
        if own.behind is not None:  # what the mount did not know of, or was still uploading
            with contextlib.suppress(FileNotFoundError):
                open_store(own.behind).rm(key_of(own.behind, name), recursive=True)
    if own.folder is None:
        assert own.objects is not None
        with contextlib.suppress(FileNotFoundError):
            open_store(own.objects).rm_file(key_of(own.objects, MARKER))
        return None
    folder, others = Path(own.folder), list[str]()
    with contextlib.suppress(FileNotFoundError):
        others = sorted(path.name for path in folder.iterdir() if path.name != MARKER)
        if not others:
            (folder / MARKER).unlink(missing_ok=True)
            folder.rmdir()
    if others:
        return f"{folder} stays: it holds {', '.join(others[:3])}, which we did not make"
    return None
