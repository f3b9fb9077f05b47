"""When does each piece of a step run? One mechanism for every strategy.

A strategy is a small program (strategies/): it says which piece of work runs on which stream and
after which others. Streams are in order, as CUDA streams are, so a piece starts when its stream is
free and all it waits for has ended: end = max(stream, waits) + duration. Two engines read the same
program: `Timeline` below keeps the ends of many cases at once as arrays (the fast path), and
simulation.py plays the recorded pieces of one case as events (the plain path, and the trace).

Ends are sums and maxima of ends, which is linear algebra with (max, +) in the place of (+, ×). So a
loop of a program, over layers or micro-batches, is a matrix that takes the ends before it to those
after it, and n turns are the matrix's n-th power: exact, in log n products, and n may differ from
case to case. Source: Baccelli, Cohen, Olsder, Quadrat, Synchronization and Linearity (1992),
sections 1.2 and 3.2.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Protocol

import numpy as np

from broadgauge.predict.facts.arrays import Times

Body = Callable[["Steps", Sequence[Any]], Sequence[Any]]
"""One turn of a loop: given what it carries, it runs pieces and says what the next turn gets."""


class Stream(StrEnum):
    """What works in order. A rank has one of each; symmetric ranks are folded into one."""

    HOST = "host"
    """The CPU thread that launches."""
    COMPUTE = "compute"
    INTRA = "intra_node"
    INTER = "inter_node"
    STORAGE = "storage"


Lane = tuple[Stream, int]
"""A stream of one pipeline stage."""
LANES: tuple[Lane, ...] = tuple((stream, 0) for stream in Stream)


class Steps(Protocol):
    """What a strategy's program is written against."""

    def run(
        self,
        stream: Stream,
        duration_s: Times,
        *,
        after: Sequence[Any] = (),
        name: str,
        stage: int = 0,
        sent_bytes: Times | None = None,
    ) -> Any:
        """A piece of work; returns what others name in `after`. Stages have streams of their own.

        `sent_bytes` is what a node sends to others.
        """
        ...

    def join(self, after: Sequence[Any]) -> Any:
        """What has ended when all of these have."""
        ...

    def repeat(self, turns: Times, body: Body, carried: Sequence[Any]) -> Sequence[Any]:
        """Runs `body` so many times, 0 included, whole numbers. It sees only what it carries."""
        ...


class Timeline:
    """Ends of pieces, for many cases of one structure at once.

    A handle is `float64[width, cases]`. Outside of loops width is 1 and the numbers are seconds.
    Inside a loop row j says how long after the loop's j-th input the piece ends, −inf if it
    doesn't wait for it.
    """

    def __init__(self, num_cases: int, free: dict[Lane, Times] | None = None) -> None:
        self._start = np.zeros((1, num_cases))
        self._free = dict.fromkeys(LANES, self._start) if free is None else free
        self._sums = {lane: np.zeros(num_cases) for lane in LANES}
        self._counts: dict[tuple[Lane, int], tuple[Times, int]] = {}
        """How often each array of durations ran on a lane: added up only when asked for."""
        self.sent_bytes = np.zeros(num_cases)

    @property
    def busy_s(self) -> dict[Lane, Times]:
        """How long each lane works."""
        for (lane, _), (duration_s, count) in self._counts.items():
            self._sums[lane] = self._sums.get(lane, 0.0) + count * duration_s
        self._counts = {}
        return self._sums

    @property
    def end_s(self) -> Times:
        """When the last stream is free."""
        return np.asarray(np.max(np.concatenate(list(self._free.values())), axis=0))

    def run(
        self,
        stream: Stream,
        duration_s: Times,
        *,
        after: Sequence[Times] = (),
        name: str,  # noqa: ARG002
        stage: int = 0,
        sent_bytes: Times | None = None,
    ) -> Times:
        """When does this piece end? `name` is for the plain engine."""
        lane = (stream, stage)
        start = self._free.get(lane, self._start)
        for wait in after:
            start = np.maximum(start, wait)
        end: Times = start + duration_s
        self._free[lane] = end
        key = (lane, id(duration_s))
        self._counts[key] = (duration_s, self._counts.get(key, (duration_s, 0))[1] + 1)
        if sent_bytes is not None:
            self.sent_bytes = self.sent_bytes + sent_bytes
        return end

    def join(self, after: Sequence[Times]) -> Times:
        """The latest of these."""
        latest = after[0]
        for wait in after[1:]:
            latest = np.maximum(latest, wait)
        return latest

    def repeat(self, turns: Times, body: Body, carried: Sequence[Times]) -> Sequence[Times]:
        """Applies the loop's matrix to the power of `turns` to the streams and what is carried."""
        num_cases = len(turns)
        lanes = [*self._free]
        size = len(lanes) + len(carried)
        inputs = [np.broadcast_to(row[:, None], (size, num_cases)) for row in _unit_matrix(size)]
        inside = Timeline(num_cases, dict(zip(lanes, inputs, strict=False)))
        results = [*body(inside, inputs[len(lanes) :])]
        outputs = [*inside._free.values(), *results]
        kept = _kept_rows(inputs, outputs)
        matrix = np.stack([outputs[row][kept] for row in kept])
        state = [*self._free.values(), *carried]
        ends = _apply_power(matrix, turns, np.stack([state[row] for row in kept]))
        for position, row in enumerate(kept):
            state[row] = ends[position]
        self._free = dict(zip(lanes, state, strict=False))
        for lane, busy_s in inside.busy_s.items():
            self._sums[lane] = self._sums[lane] + turns * busy_s
        self.sent_bytes = self.sent_bytes + turns * inside.sent_bytes
        return state[len(lanes) :]


def _kept_rows(inputs: list[Times], outputs: list[Times]) -> list[int]:
    """Which rows matter? Not those that the loop neither changes nor waits for.

    What waits for what is the same in all cases, so the first tells.
    """
    waits = np.array([row[:, 0] > -np.inf for row in outputs])
    np.fill_diagonal(waits, val=False)
    return [
        row for row in range(len(inputs)) if outputs[row] is not inputs[row] or waits[:, row].any()
    ]


def _unit_matrix(size: int) -> Times:
    """What changes nothing: 0 on the diagonal, −inf elsewhere."""
    unit = np.full((size, size), -np.inf)
    np.fill_diagonal(unit, 0.0)
    return unit


def _product(a: Times, b: Times) -> Times:
    """max over k of a[i, k, case] + b[k, j, case]."""
    best = a[:, 0, None] + b[None, 0]
    term = np.empty_like(best)
    for inner in range(1, b.shape[0]):
        np.add(a[:, inner, None], b[None, inner], out=term)
        np.maximum(best, term, out=best)
    return np.asarray(best)


def _apply_power(matrix: Times, turns: Times, state: Times) -> Times:
    """matrix^turns ⊗ state, where turns differ from case to case: by the bits of turns."""
    counts = turns.astype(np.int64)
    if (counts == 1).all():
        return _product(matrix, state)
    for bit in range(int(counts.max(initial=0)).bit_length()):
        if bit:
            matrix = _product(matrix, matrix)
        is_set = ((counts >> bit) & 1).astype(bool)
        if is_set.any():
            state = np.where(is_set, _product(matrix, state), state)
    return state
