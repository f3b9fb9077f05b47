"""How does SIGINT end a run without tearing what is being written?

A signal handler calls `Interrupts.request`. It raises Interrupt in the main thread at once, or, in
a shielded part (a record being written, a launch being closed), when that part is done. A second
request raises at once in any case and so cuts short what is shielded: the run folder survives
that, as it survives SIGKILL, and the platform is closed all the same.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ASK_AGAIN_S = 0.02
_IMPORT_SYSTEM = "<frozen importlib._bootstrap>"


class Interrupt(BaseException):
    """The user or the system wants the run to end. No Exception: nothing may swallow it."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal.Signals(signal_number).name)
        self.signal_number = signal_number

    @property
    def exit_code(self) -> int:
        """130 for SIGINT, 143 for SIGTERM: what a shell reports."""
        return 128 + self.signal_number


class Interrupts:
    """Whether an end was asked for, and whether this is a moment for it."""

    def __init__(self) -> None:
        self._num_requests = 0
        self._shields = 0
        self._pending: int | None = None
        self.requested: int | None = None
        """The last signal that asked."""

    def request(self, signal_number: int) -> None:
        """Raises Interrupt, now or when the shielded part is done."""
        self._num_requests += 1
        self.requested = signal_number
        if self._shields and self._num_requests == 1:
            self._pending = signal_number
            return
        self._pending = None
        raise Interrupt(signal_number)

    @contextmanager
    def shielded(self) -> Iterator[None]:
        """The first request that comes inside is raised at the end; a second one at once."""
        self._shields += 1
        try:
            yield
        finally:
            self._shields -= 1
        if self._pending is not None and not self._shields:
            pending, self._pending = self._pending, None
            raise Interrupt(pending)


@contextmanager
def signals_to(interrupts: Interrupts) -> Iterator[None]:
    """Main thread only: SIGINT, SIGTERM and SIGHUP become requests while this lasts.

    SIGHUP stays ignored where it was, as under nohup; and each is left to a program that handles
    it outside of Python. The first one that comes while a module is imported waits for the end of
    that: numpy's C parts print what is raised in them, and go on.
    """
    waiting: list[int] = []

    def handle(signal_number: int, frame: FrameType | None) -> None:
        if not waiting and _is_importing(frame):
            waiting.append(signal_number)
            before.setdefault(signal.SIGALRM, signal.signal(signal.SIGALRM, ask_again))
            signal.setitimer(signal.ITIMER_REAL, ASK_AGAIN_S)
            return
        waiting.clear()
        interrupts.request(signal_number)

    def ask_again(signal_number: int, frame: FrameType | None) -> None:
        del signal_number
        if waiting and _is_importing(frame):
            signal.setitimer(signal.ITIMER_REAL, ASK_AGAIN_S)
        elif waiting:
            interrupts.request(waiting.pop())

    unheard = (signal.SIG_IGN, None)  # None: set by a program that Python is a part of
    heard = [number for number in SIGNALS if signal.getsignal(number) not in unheard]
    before = {number: signal.signal(number, handle) for number in heard}
    try:
        yield
    finally:
        if signal.SIGALRM in before:  # else the timer is the caller's own
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
        if waiting:
            interrupts.request(waiting.pop())


def _is_importing(frame: FrameType | None) -> bool:
    """Is a module being imported in the main thread at this moment?"""
    while frame is not None:
        if frame.f_code.co_filename == _IMPORT_SYSTEM:
            return True
        frame = frame.f_back
    return False
