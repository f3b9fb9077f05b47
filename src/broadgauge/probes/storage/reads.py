"""How are files brought into the asked state of the cache, and which state was it in truth?

What a mount with a cache of its own shows is put into the bucket behind it, so that its first read
is a cold one; without a bucket to put it into, the record says that it can't be known.
"""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from broadgauge.messages.storage import CacheProof, CacheState
from broadgauge.probes.storage import cache
from broadgauge.probes.storage.objects import key_of, open_store
from broadgauge.probes.storage.place import OwnPlace
from broadgauge.probes.storage.ranks import Peers
from broadgauge.probes.trial import RefusedError

VISIBLE_S = 15.0
"""How long a mount may take to show what is in the bucket: rclone's listing is renewed every 10 s
as SkyPilot mounts it, every 5 minutes by default."""


def put_file(own: OwnPlace, name: str, content: bytes) -> bool:
    """A file to read later, on the storage for good. Is it fresh: did it reach the storage without
    passing the cache of a mount?"""
    if own.folder is None:
        assert own.objects is not None
        open_store(own.objects).pipe_file(key_of(own.objects, name), content)
        return True
    if own.behind is not None:
        make_folder_unseen(own, name)
        open_store(own.behind).pipe_file(key_of(own.behind, name), content)
        return True
    path = own.path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return False


def make_folder_unseen(own: OwnPlace, name: str) -> None:
    """The folder of a file that is put into the bucket behind the mount: made through the mount,
    which then lists it when it is first looked into, and shows what was put there before."""
    own.path(name).parent.mkdir(parents=True, exist_ok=True)


def wait_for_files(paths: Sequence[Path], limit_s: float = VISIBLE_S) -> None:
    """Until the mount shows them. Raises RefusedError after the limit."""
    end_s = time.monotonic() + limit_s
    for path in paths:
        while not path.exists():
            if time.monotonic() > end_s:
                raise RefusedError(
                    f"{path} was written by another way and is not seen here after {limit_s:g} s\n"
                    "hint: a mount's listing is renewed every --dir-cache-time"
                )
            time.sleep(0.1)


@dataclass(slots=True, kw_only=True)
class ReadFiles:
    """Files of a read, before and after. `paths`: known when they are written; none of objects."""

    asked: CacheState
    ranks: Peers
    paths: Callable[[], Sequence[Path]]
    is_fresh: bool = False
    is_shared_read: bool = False
    """All ranks of a node read the same files, so that one finds what another has fetched."""
    before: cache.Before | None = field(default=None)

    def prepare(self) -> None:
        paths = self.paths()
        if not paths:
            return
        wait_for_files(paths)
        if self.asked == "cold":
            cache.evict(paths)
        else:
            cache.warm(paths)
        is_fresh = self.is_fresh and self.asked == "cold"  # warming has read it
        self.before = cache.look_before(paths, is_fresh=is_fresh)

    def prove(self, read_bytes: int | None, num_bytes: int) -> CacheProof:
        """`num_bytes`: that this rank read."""
        if self.before is None:
            return cache.of_objects(num_bytes)
        if not self.is_shared_read:
            return cache.prove(self.before, read_bytes, num_bytes)
        here = os.uname().nodename
        heard = [one for one in self.ranks.tell_all((here, read_bytes)) if one[0] == here]
        told = [count for _, count in heard if count is not None]
        total = sum(told) if len(told) == len(heard) else None
        return cache.prove(self.before, total, num_bytes)
