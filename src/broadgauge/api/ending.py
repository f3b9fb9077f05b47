"""How does Ctrl-C end what Python waits for? In good order, and then as any other Python code.

In the main thread SIGINT, SIGTERM and SIGHUP are taken while a call lasts, as the command takes
them: the trial under way is dropped, all processes are ended, and the folder can be resumed. Then
the signal is passed on: SIGINT becomes a KeyboardInterrupt, another goes to whoever had it before
(by default it ends the process). Python gives signals to its main thread only, so in another one
none is taken.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from broadgauge.api.progress import Watching
from broadgauge.engine.interrupts import Interrupt, Interrupts, signals_to


@contextmanager
def interruptible(watching: Watching) -> Iterator[Interrupts]:
    """Gives what ends a run; raises KeyboardInterrupt when that has been done."""
    interrupts = Interrupts()
    try:
        if threading.current_thread() is threading.main_thread():
            with signals_to(interrupts):
                yield interrupts
        else:
            yield interrupts
    except Interrupt as interrupt:
        _hand_on(interrupt.signal_number, watching)
    except Exception:
        # One that comes while pydantic builds a model is turned into an error of pydantic's.
        if interrupts.requested is None:
            raise
        _hand_on(interrupts.requested, watching)


def _hand_on(number: int, watching: Watching) -> NoReturn:
    name = signal.Signals(number).name
    if number != signal.SIGINT:
        signal.raise_signal(number)
        raise SystemExit(128 + number)
    folder = watching.folder
    how = "" if folder is None else f"; broadgauge.resume({str(folder)!r}) goes on"
    raise KeyboardInterrupt(f"the run was ended by {name}{how}") from None
