"""When does each piece of a step run? One mechanism for every strategy.

A strategy is a small program (strategies/): it says which piece of work runs on which stream and
after which others. Streams are in order, as CUDA streams are, so a piece starts when its stream is
free and all it waits for has ended: end = max(stream, waits) + duration. Two engines read the same
program: `Timeline` below keeps the ends of many cases at once as arrays (the fast path), and
simulation.py plays the recorded pieces of one case as events (the plain path, and the trace).
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.float64]
"""Seconds, `float64[cases]`."""


class Stream(StrEnum):
    """What works in order. A rank has one of each; symmetric ranks are folded into one."""

    HOST = "host"
    """The CPU thread that launches."""
    COMPUTE = "compute"
    INTRA = "intra_node"
    INTER = "inter_node"
    STORAGE = "storage"


class Steps(Protocol):
    """What a strategy's program is written against."""

    def run(
        self, stream: Stream, duration_s: Times, *, after: Sequence[Any] = (), name: str
    ) -> Any:
        """A piece of work; returns what others name in `after`."""
        ...


class Timeline:
    """Ends of pieces, for many cases of one structure at once."""

    def __init__(self, num_cases: int) -> None:
        self.free_s: dict[Stream, Times] = {stream: np.zeros(num_cases) for stream in Stream}
        self.busy_s: dict[Stream, Times] = {stream: np.zeros(num_cases) for stream in Stream}

    def run(
        self,
        stream: Stream,
        duration_s: Times,
        *,
        after: Sequence[Times] = (),
        name: str,  # noqa: ARG002
    ) -> Times:
        """When does this piece end? `name` is for the plain engine."""
        start_s = self.free_s[stream]
        for wait_s in after:
            start_s = np.maximum(start_s, wait_s)
        end_s = start_s + duration_s
        self.free_s[stream] = end_s
        self.busy_s[stream] = self.busy_s[stream] + duration_s
        return end_s
