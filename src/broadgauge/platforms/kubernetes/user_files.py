"""Which files of the user's do pods need? Those that are listed, and scripts that commands name."""

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from broadgauge.platforms.kubernetes.nothing_secret import refuse_secret_files
from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError
from broadgauge.specs.kubernetes import Kubernetes
from broadgauge.specs.network import Network

MOST_BYTES = 900_000
"""Of a ConfigMap's 1 MiB, names and base64 of what is no text counted. Source: Kubernetes,
"ConfigMaps": the data stored in one can't exceed 1 MiB."""


def user_files(cases: Iterable[Case], settings: Kubernetes, folder: Path) -> dict[str, bytes]:
    """By path relative to where commands run. Raises InputError."""
    if settings.working_folder is not None and not settings.files:
        return {}
    listed = [Path(name).as_posix() for name in settings.files]
    names = dict.fromkeys(listed)
    if settings.working_folder is None:
        for case in cases:
            names |= dict.fromkeys(_named(case, folder))
    found = {name: _read(folder, name) for name in names}
    refuse_secret_files(found, listed)
    size_bytes = sum(len(name) + len(data) * 4 // 3 for name, data in found.items())
    if size_bytes > MOST_BYTES:
        largest = max(found, key=lambda name: len(found[name]))
        raise InputError(
            f"kubernetes.files: {size_bytes:,} bytes, and a ConfigMap holds {MOST_BYTES:,}; the "
            f"largest is {largest} with {len(found[largest]):,}",
            hint="put it on a volume or into the image, and name its folder: `working_folder`",
        )
    return found


def _named(case: Case, folder: Path) -> Iterator[str]:
    """Those of its words that are files beside the experiment."""
    for word in case.workload.words_of_files:
        path = Path(word)
        is_below = not path.is_absolute() and ".." not in path.parts
        if is_below and os.path.isfile(folder / path):  # noqa: PTH113  False for what is no name
            yield path.as_posix()


def _read(folder: Path, name: str) -> bytes:
    """Raises InputError."""
    path = Path(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name:
        raise InputError(
            f"kubernetes.files: {name!r} is not below the experiment's folder",
            hint="a path relative to it, without `..`",
        )
    if name.startswith(".."):
        raise InputError(
            f"kubernetes.files: {name!r}: a ConfigMap takes no path that begins with `..`",
            hint="rename it",
        )
    try:
        place = (folder / path).resolve(strict=True)
        if not place.is_relative_to(folder.resolve()):
            raise InputError(
                f"kubernetes.files: {name} is a link out of the experiment's folder",
                hint="a copy of it in the folder, or a volume or image that has it",
            )
        data = _plain_file(place)
    except (OSError, RuntimeError) as error:  # RuntimeError: a loop of links
        reason = error.strerror if isinstance(error, OSError) else "a loop of links"
        raise InputError(
            f"kubernetes.files: {name} can't be read: {reason or error}",
            hint=f"files are looked for in {folder}",
        ) from error
    if len(data) > MOST_BYTES:
        raise InputError(
            f"kubernetes.files: {name} is larger than what a ConfigMap holds, {MOST_BYTES:,} bytes",
            hint="put it on a volume or into the image, and name its folder: `working_folder`",
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


def read_address_map(networks: Sequence[Network], folder: Path) -> str | None:
    """The lines of the one map that these networks name. Raises InputError."""
    ipams = [each.kubernetes.ipam for each in networks if each.kubernetes is not None]
    names = dict.fromkeys(ipam.map for ipam in ipams if ipam is not None and ipam.map is not None)
    if not names:
        return None
    if len(names) > 1:
        raise InputError(
            f"networks: several address maps are named: {', '.join(names)}",
            hint="one file has the lines of all NICs",
        )
    (name,) = names
    try:
        data = _plain_file(folder / name)
        text = data.decode()
    except (OSError, ValueError) as error:
        raise InputError(
            f"ipam.map: {name} can't be read: {error}", hint=f"it is looked for in {folder}"
        ) from error
    if len(data) > MOST_BYTES:
        raise InputError(
            f"ipam.map: {name} is larger than what a ConfigMap holds, {MOST_BYTES:,} bytes",
            hint="the lines of this run's nodes are enough",
        )
    return text
