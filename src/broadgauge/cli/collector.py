"""May Python look for garbage while a command reads? Not where the command ends soon anyway."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collections() -> Iterator[None]:
    """For commands that read a run, say something of it and end. Also a decorator.

    10,000 trials are some million objects without cycles. The collector visits them again and again
    while they grow, a third of the time of `show`, and frees nothing: counting references does.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
