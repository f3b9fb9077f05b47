"""Which of the files that a server has are asked for, and how do they get into a folder?"""

import hashlib
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from broadgauge.agent.volume.disk import write_synced
from broadgauge.agent.volume.downloads import download
from broadgauge.agent.volume.inside import path_inside
from broadgauge.agent.volume.telling import LastingError, say
from broadgauge.messages.prepare_order import FetchOrder


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFile:
    """One of a repository's, in one version of it."""

    path: str
    url: str
    sha256: str | None = None
    size_bytes: int | None = None
    """None: the server does not say it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialFolders:
    """Where files get whole, and where they grow."""

    whole: Path
    partials: Path
    version: Path
    """A file that says of which version all of `whole` is, before the first of it comes."""

    def kept_version(self) -> str | None:
        """None: nothing has come of any."""
        try:
            return self.version.read_text(encoding="utf-8") or None
        except FileNotFoundError:
            return None

    def keep_version(self, version: str) -> None:
        """Of another one nothing stays: a branch has moved since an earlier try. Raises OSError."""
        if self.kept_version() == version:
            return
        shutil.rmtree(self.whole)
        self.whole.mkdir()
        growing = self.version.with_name(f"{self.version.name}.partial")
        write_synced(growing, version)
        growing.replace(self.version)


def fetch_files(
    order: FetchOrder,
    files: Sequence[RemoteFile],
    room: PartialFolders,
    authorization: Callable[[], str | None],
) -> None:
    """Those that were asked for; `authorization` is asked again for each, since it may expire.
    Raises FetchError and OSError."""
    wanted = [each for each in files if _is_wanted(order, each.path)]
    if not wanted:
        some = ", ".join(each.path for each in files[:10])
        raise LastingError(
            f"it has no {order.file or 'file'} that is asked for; its {len(files)} files: {some}"
        )
    say(f"{len(wanted)} of {len(files)} files")
    for file in wanted:
        target = path_inside(room.whole, file.path, "the repository's file")
        if not target.exists():
            name = hashlib.sha256(file.url.encode()).hexdigest()
            partial = room.partials / f"{name}.partial"
            download(
                file.url,
                target,
                partial,
                authorization=authorization(),
                sha256=file.sha256,
                size_bytes=file.size_bytes,
            )


def _is_wanted(order: FetchOrder, path: str) -> bool:
    is_meant = order.file is None or path == order.file
    return is_meant and not any(fnmatchcase(path, pattern) for pattern in order.leave_out)
