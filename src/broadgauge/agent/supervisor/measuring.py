"""How does the supervisor's loop wait for a link to be measured, and do all else meanwhile?"""

import selectors
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from broadgauge.agent.supervisor.side_process import SideAnswer, SideProcess

T = TypeVar("T")


class LinkMeasuring:
    """The measurement under way, if there is one: a child whose pipe the selector watches."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self._selector = selector
        self._measuring: Generator[SideProcess, SideAnswer, Any] | None = None
        self._child: SideProcess | None = None
        self._then: Callable[[Any], None] | None = None

    @property
    def is_under_way(self) -> bool:
        """Does anything wait for a measurement?"""
        return self._measuring is not None

    @property
    def deadline_s(self) -> float | None:
        """When is the child's time over? None: there is none."""
        return None if self._child is None else self._child.deadline_s

    def begin(
        self, measuring: Generator[SideProcess, SideAnswer, T], then: Callable[[T], None]
    ) -> None:
        """Measure, and go on with `then`, at once where there is nothing to measure.

        One that is under way is dropped.
        """
        self.drop()
        self._measuring, self._then = measuring, then
        self._advance(None)

    def is_of(self, data: object) -> bool:
        """Is this what the selector keeps with the child's pipe?"""
        return self._child is not None and data is self._child

    def listen(self) -> None:
        """The child has said something, or ended."""
        if self._child is not None:
            self._take(self._child.read())

    def look_at_the_clock(self, now_s: float) -> None:
        """A child whose time is over is ended, and what it measures is unknown."""
        if self._child is not None and now_s >= self._child.deadline_s:
            self._take(self._child.give_up())

    def drop(self) -> None:
        """Nothing waits for it any more."""
        self._end_child()
        self._measuring = self._then = None

    def _take(self, answer: SideAnswer | None) -> None:
        if answer is not None:
            self._end_child()
            self._advance(answer)

    def _advance(self, answer: SideAnswer | None) -> None:
        """Begin the next child, or what waits for the last."""
        assert self._measuring is not None
        assert self._then is not None
        try:
            child = next(self._measuring) if answer is None else self._measuring.send(answer)
        except StopIteration as finished:
            then, found = self._then, finished.value
            self.drop()
            then(found)
            return
        self._child = child
        self._selector.register(child.fd, selectors.EVENT_READ, child)

    def _end_child(self) -> None:
        if self._child is not None:
            self._selector.unregister(self._child.fd)
            self._child.end()
            self._child = None
