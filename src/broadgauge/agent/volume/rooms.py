"""In which folder does a pod make something, and with which of an earlier pod's does it go on?

In one of its own, so that two pods never write the same file. A lock says who lives where all nodes
see it; many volumes keep it to the node (NFS with `nolock`, Lustre with `localflock`, FUSE), so
each pod beats in its folder, too. Of one that beats no more another takes the folder by renaming
it, and whoever lost his so, by a long stall, finds that out before anything counts as whole.
"""

import os
import shutil
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from broadgauge.agent.volume.disk import write_synced
from broadgauge.agent.volume.links import is_done, rooms_of
from broadgauge.agent.volume.telling import TELL_EVERY_S, FetchError, say

BEAT_EVERY_S = 1.0
STILL_S = 15.0
"""Without a beat: its pod is no more. Files' times play no part, since nodes' clocks differ."""
LOOK_EVERY_S = 0.5
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_UNKNOWN = "unknown"
_MOST_BEAT_BYTES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRoom:
    """As long as it is this pod's."""

    path: Path
    name: str
    is_again: bool
    """Something of an earlier pod's is in it."""

    @property
    def whole(self) -> Path:
        """What is finished."""
        return self.path / "whole"

    def check(self) -> None:
        """Raises FetchError where another pod has taken it."""
        with suppress(FileNotFoundError):
            if (self.path / "owner").read_text(encoding="utf-8") == self.name:
                return
        raise FetchError(
            f"another pod goes on with {self.path.name}, since this one was still for {STILL_S:g} s"
        )


@contextmanager
def own_room(place: Path, *, is_locked: bool) -> Iterator[OwnRoom | None]:
    """None: another pod has made it. Raises OSError."""
    if not _all_are_left(place, is_locked=is_locked):
        yield None
        return
    name = uuid.uuid4().hex[:12]
    path = place.with_name(f".{place.name}.part-{name}")
    is_again = any(_is_taken(old, path) for old in rooms_of(place))
    path.mkdir(exist_ok=True)
    _write_beat(path, 0)
    write_synced(path / "owner", name)
    room = OwnRoom(path=path, name=name, is_again=is_again)
    room.whole.mkdir(exist_ok=True)
    try:
        with _beating(path):
            yield room
    except (FetchError, OSError):
        if not is_done(place):
            room.check()  # a failure that comes of having lost it is said so
            raise
    finally:
        if is_done(place):  # whoever made it: nobody needs the others
            for each in rooms_of(place):
                shutil.rmtree(each, ignore_errors=True)


def _is_taken(old: Path, own: Path) -> bool:
    """By one pod only, and with its beat. An empty one is a pod's that just begins."""
    try:
        if not any(old.iterdir()):
            return False
        _write_beat(old, 0)
        old.rename(own)
    except FileNotFoundError:
        return False
    return True


def _all_are_left(place: Path, *, is_locked: bool) -> bool:
    """Waits until no other pod's beats; False: one has made it. Raises OSError."""
    beats: dict[Path, str] = {}
    changed_s: dict[Path, float] = {}
    told_s = float("-inf")
    while not is_done(place):
        now_s = time.monotonic()
        living = []
        for path in rooms_of(place):
            beat = _beat(path)
            if beats.get(path) != beat:
                beats[path], changed_s[path] = beat, now_s
            is_dead = not beat or (is_locked and beat.split()[0] == _node(path) != _UNKNOWN)
            if not is_dead and now_s - changed_s[path] < STILL_S:
                living.append(path.name)
        if not living:
            return True
        if now_s - told_s >= TELL_EVERY_S:
            told_s = now_s
            say(f"waiting for {' and '.join(living)}: does another pod still make the same?")
        time.sleep(LOOK_EVERY_S)
    return False


@contextmanager
def _beating(path: Path) -> Iterator[None]:
    ended = threading.Event()
    thread = threading.Thread(target=_beat_until, args=(path, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(timeout=STILL_S)
        with suppress(OSError):
            (path / "beat").unlink(missing_ok=True)


def _beat_until(path: Path, ended: threading.Event) -> None:
    number = 0
    while not ended.wait(BEAT_EVERY_S):
        number += 1
        with suppress(OSError):  # a full volume, or a folder that is another pod's by now
            _write_beat(path, number)


def _write_beat(path: Path, number: int) -> None:
    """In place, so that a full volume has room for it."""
    file = os.open(path / "beat", os.O_WRONLY | os.O_CREAT, 0o666)
    try:
        os.pwrite(file, f"{_node(path)} {number:12}\n".encode(), 0)
    finally:
        os.close(file)


def _beat(path: Path) -> str:
    """Opened each time: only then NFS asks its server. Empty: its pod has ended."""
    try:
        with (path / "beat").open("rb") as file:
            return file.read(_MOST_BEAT_BYTES).decode(errors="replace").strip()
    except (FileNotFoundError, NotADirectoryError):
        return ""


def _node(path: Path) -> str:
    """With the mount: there pods see each other's locks, whatever the volume is."""
    try:
        return f"{_BOOT.read_text(encoding='utf-8').strip()}:{path.stat().st_dev}"
    except OSError:
        return _UNKNOWN
