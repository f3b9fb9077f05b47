"""What does a rank do with what it wrote when it is told to end? It removes that first, and ends as
it was told.

Where one rank of a trial fails, the others get SIGTERM, and some seconds later SIGKILL; so do all
when somebody ends the run. By default a process ends at once then, and its files stay.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class ToldToEndError(BaseException):
    """Unwinds to where the signal is taken: nothing in between handles it."""


@contextmanager
def cleaning_when_told_to_end() -> Iterator[None]:
    """Within it SIGTERM raises, so that whatever is held is let go, and then ends this process.

    Python takes signals in its first thread alone: anywhere else nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    here, is_told = os.getpid(), False

    def end(number: int, frame: object) -> None:
        nonlocal is_told
        del frame
        if os.getpid() != here:  # a worker of a loader: none of this is its to remove
            _end_by(number)
        is_told = True
        signal.signal(number, signal.SIG_IGN)  # what is told again waits for it
        raise ToldToEndError

    former = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        if is_told:  # whatever was raised on the way out
            _end_by(signal.SIGTERM)
        signal.signal(signal.SIGTERM, former)


def _end_by(number: int) -> None:
    """As a process that takes no notice of it."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
