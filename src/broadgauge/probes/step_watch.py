"""Do a training's steps still come? A thread looks at their pace while the rank is in them.

On CPUs only: a GPU's steps are queued in no time and waited for at the end of a block, so that a
step's end is not seen. There the process group's own limit is what ends a hang.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from broadgauge.probes.stall import Pace

_LOOK_S = 1.0
_LOOK_RATIO = 0.1
"""Of the shortest stall, between two looks at the clock."""


class StepWatch:
    """Told of steps by the rank's main thread; tells of a stall once, from a thread of its own."""

    def __init__(self, stall_s: float, tell: Callable[[str], None]) -> None:
        self._pace = Pace(stall_s)
        self._tell = tell
        self._look_s = min(_LOOK_S, _LOOK_RATIO * stall_s)
        self._is_over = threading.Event()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """The thread lives as long as this."""
        thread = threading.Thread(target=self._look, name="step watch", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            thread.join()

    @contextmanager
    def steps(self) -> Iterator[Callable[[], None]]:
        """A block of steps; what is given is called after each."""
        self._pace.comes(time.monotonic())
        try:
            yield lambda: self._pace.comes(time.monotonic())
        finally:
            self._pace.pauses()

    def pause(self) -> None:
        """What is done until the next step is told of is no step."""
        self._pace.pauses()

    def _look(self) -> None:
        while not self._is_over.wait(self._look_s):
            now_s = time.monotonic()
            if self._pace.silence_s(now_s) >= self._pace.limit_s():
                self._tell(f"no step {self._pace.words(now_s)}")
                return
