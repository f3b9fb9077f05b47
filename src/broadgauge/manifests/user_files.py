"""Which files of the user's do pods need? Those listed, and those that a workload names."""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from broadgauge.manifests.nothing_secret import refuse_secret_files, refuse_token
from broadgauge.specs.errors import InputError
from broadgauge.specs.kubernetes.settings import Kubernetes
from broadgauge.wording.amounts import show_size

MOST_BYTES = 1024 * 1024
"""Source: Kubernetes, "ConfigMaps": the data stored in one can't exceed 1 MiB; what is no text
counts as it is, without its base64 (apis/core/validation, ValidateConfigMap)."""
KEY = "kubernetes.files"
ELSEWHERE = "an image or a volume that has it, and `kubernetes.working_folder`: its folder there"


def user_files(named: Iterable[str], settings: Kubernetes, folder: Path) -> dict[str, bytes]:
    """By path relative to where commands run. `named`: words that may be files. Raises InputError.

    With a `working_folder` all is there already.
    """
    if settings.working_folder is not None:
        return {}
    listed = [Path(name).as_posix() for name in settings.files]
    names = dict.fromkeys((*listed, *_files_among(named, folder)))
    found = {name: read_named(folder, name) for name in names}
    refuse_secret_files(found, listed)
    size_bytes = sum(map(len, found.values()))
    if size_bytes > MOST_BYTES:
        largest = max(found, key=lambda name: len(found[name]))
        raise InputError(
            f"{KEY}: {show_size(size_bytes)} in all, and a ConfigMap holds "
            f"{show_size(MOST_BYTES)}; the largest is {largest} with "
            f"{show_size(len(found[largest]))}",
            hint=ELSEWHERE,
        )
    return found


def shared_file(folder: Path, name: str, key: str) -> bytes:
    """One that all jobs share, named by `key`. Raises InputError."""
    content = read_named(folder, name, key)
    refuse_token(key, name, content)
    return content


def _files_among(words: Iterable[str], folder: Path) -> Iterator[str]:
    """Those that are files below the experiment's folder."""
    for word in words:
        path = Path(word)
        is_below = not path.is_absolute() and ".." not in path.parts
        if is_below and os.path.isfile(folder / path):  # noqa: PTH113  False for what is no name
            yield path.as_posix()


def read_named(folder: Path, name: str, key: str = KEY) -> bytes:
    """A file below the experiment's folder. `key`: that names it, for messages. Raises
    InputError."""
    path = Path(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name:
        raise InputError(
            f"{key}: {name!r} is not below the experiment's folder",
            hint="a path relative to it, without `..`",
        )
    if name.startswith(".."):
        raise InputError(
            f"{key}: {name!r}: a ConfigMap takes no path that begins with `..`",
            hint="rename it",
        )
    try:
        place = (folder / path).resolve(strict=True)
        if not place.is_relative_to(folder.resolve()):
            raise InputError(
                f"{key}: {name} is a link out of the experiment's folder",
                hint="a copy of it in the folder, or a volume or image that has it",
            )
        data = _plain_file(place)
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of links
        reason = error.strerror if isinstance(error, OSError) else "a loop of links"
        is_folder = isinstance(error, IsADirectoryError)
        raise InputError(
            f"{key}: {name} can't be read: {reason or error}",
            hint="list its files" if is_folder else f"files are looked for in {folder}",
        ) from error
    if len(data) > MOST_BYTES:
        raise InputError(
            f"{key}: {name} is larger than what a ConfigMap holds, {show_size(MOST_BYTES)}",
            hint=ELSEWHERE if key == KEY else "of its lines those that these pods need, alone",
        )
    return data


def _plain_file(path: Path) -> bytes:
    """At most one byte more than a ConfigMap takes. Raises OSError; a pipe or device is one."""

    def without_waiting(name: str, flags: int) -> int:
        return os.open(name, flags | os.O_NONBLOCK)

    with open(path, "rb", opener=without_waiting) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no plain file")
        return file.read(MOST_BYTES + 1)
