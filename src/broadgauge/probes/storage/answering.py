"""Does the storage still answer? A thread looks at what this rank and its workers wait for.

Nothing ends what waits for a mount that hangs: no exception, no signal's handler. So who waits says
nothing, and this thread says it for it. A long fsync of a slow disk looks the same; so nothing is
ended here, and it is told when the call has come back.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from broadgauge.messages.rank import Unanswered
from broadgauge.messages.storage import StorageTask
from broadgauge.probes.storage.kernel_calls import WaitingCall, waiting_call
from broadgauge.probes.trial import Trial

_LOOK_S = 1.0
_SAY_AFTER_S = 1.0
"""A call that comes back sooner is not worth a word."""


@contextmanager
def answering(trial: Trial, task: StorageTask) -> Iterator[None]:
    """While this lasts the agent is told what does not come back from the storage."""

    def tell(what: str) -> None:
        message = f"{what} has not come back: a mount that hangs?" if what else ""
        if message:
            message = f"storage `{task.storage}` ({task.folder}) does not answer: {message}"
        trial.channel.send(Unanswered(trial_id=trial.trial_id, message=message))

    watch = StorageWatch(str(Path(task.folder).absolute()), tell)
    with watch.watching():
        # Descriptors are told by this name. To ask for it may be what does not come back.
        watch.folders |= {task.folder, os.path.realpath(task.folder)}
        yield


class StorageWatch:
    """Tells what is waited for, and an empty text once it has come."""

    def __init__(self, folder: str, tell: Callable[[str], None]) -> None:
        """`folder`: of the storage."""
        self.folders = frozenset({folder})
        self._tell = tell
        self._told = ""
        self._since_s: dict[str, float] = {}
        self._is_over = threading.Event()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """The thread lives as long as this."""
        thread = threading.Thread(target=self._look_again, name="storage watch", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            thread.join()

    def look(self, now_s: float, calls: list[WaitingCall]) -> None:
        """`calls`: that are waited for now."""
        waiting = {call.evidence: call.words for call in calls}
        self._since_s = {key: self._since_s.get(key, now_s) for key in waiting}
        first = min(self._since_s, key=self._since_s.__getitem__, default=None)
        is_long = first is not None and now_s - self._since_s[first] >= _SAY_AFTER_S
        words = waiting[first] if first is not None and is_long else ""
        if words != self._told:
            self._told = words
            self._tell(words)

    def _look_again(self) -> None:
        while not self._is_over.wait(_LOOK_S):
            self.look(time.monotonic(), waiting_calls(self.folders))


def waiting_calls(folders: frozenset[str]) -> list[WaitingCall]:
    """Of this process and its children. Its first thread comes first, and alone where it is one."""
    own = os.getpid()
    call = waiting_call(own, own, folders)
    if call is not None:
        return [call]
    found = []
    for pid in (own, *_children()):
        for thread in _threads(pid):
            call = waiting_call(pid, thread, folders)
            if call is not None:
                found.append(call)
    return found


def _children() -> list[int]:
    """Of any of its threads. Empty where the kernel does not say."""
    found: list[int] = []
    for place in Path("/proc/self/task").glob("*/children"):
        try:
            found += map(int, place.read_text().split())
        except OSError:  # the thread has ended
            continue
    return found


def _threads(pid: int) -> list[int]:
    try:
        return sorted(int(place.name) for place in Path(f"/proc/{pid}/task").iterdir())
    except OSError:  # it has ended
        return []
