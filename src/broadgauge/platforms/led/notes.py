"""What is the user told of a led run besides what it measures? At once, and again at its end.

Watches and logs have threads of their own, and what shows a note is not made for several: what they
say waits until the run's own thread looks.
"""

import threading
from collections.abc import Iterable
from queue import SimpleQueue

from broadgauge.platforms.led.allocation import Say


class Notes:
    """Of one run."""

    def __init__(self, known: Iterable[str]) -> None:
        """`known`: before it begins. It is made in the run's own thread."""
        self.show: Say = lambda _: None
        """As the launch that is asked for shows a note."""
        self._kept = dict.fromkeys(known)
        self._thread = threading.get_ident()
        self._waiting: SimpleQueue[str] = SimpleQueue()

    @property
    def all(self) -> tuple[str, ...]:
        """Each once, in their order."""
        return tuple(self._kept)

    def keep(self, text: str) -> None:
        """For the end."""
        self._kept[text] = None

    def say(self, text: str) -> None:
        """At once, and for the end. From any thread."""
        self.keep(text)
        if threading.get_ident() == self._thread:
            self.show(text)
        else:
            self._waiting.put(text)

    def show_waiting(self) -> None:
        """What other threads have said meanwhile."""
        while not self._waiting.empty():
            self.show(self._waiting.get())
