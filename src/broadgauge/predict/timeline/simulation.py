"""What happens in one step, piece by piece? The plain engine: the oracle of the fast one.

`Recorder` takes down a strategy's program, loops unrolled, for one case. `play` is an event
simulation of the pieces: a stream works on its pieces in the order in which they were given to it,
and a piece begins when all it waits for has ended.
"""

import heapq
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from broadgauge.predict.facts.arrays import Times
from broadgauge.predict.timeline.timeline import Body, Lane, Stream


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Work to do."""

    name: str
    lane: Lane | None
    """None: nothing works; it only ends when all it waits for has."""
    duration_s: float
    after: tuple[int, ...]
    """Numbers of other pieces, all given earlier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Work done."""

    name: str
    lane: Lane
    start_s: float
    end_s: float


class Recorder:
    """Takes down one case's pieces; a handle is a piece's number."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []

    def run(
        self,
        stream: Stream,
        duration_s: Times,
        *,
        after: Sequence[int] = (),
        name: str,
        stage: int = 0,
        sent_bytes: Times | None = None,  # noqa: ARG002
    ) -> int:
        """Another piece."""
        return self._add(name, (stream, stage), float(duration_s[0]), after)

    def join(self, after: Sequence[int]) -> int:
        """A piece of no work."""
        return after[0] if len(after) == 1 else self._add("", None, 0.0, after)

    def repeat(self, turns: Times, body: Body, carried: Sequence[int]) -> Sequence[int]:
        """All turns, one after the other. The body is asked once and its pieces are copied.

        Inside, what is carried has the numbers −1, −2, …; the copies get the numbers it had last.
        """
        inside = Recorder()
        results = body(inside, [-1 - place for place in range(len(carried))])
        for _ in range(int(turns[0])):
            base, before = len(self.pieces), carried

            def moved(number: int, base: int = base, before: Sequence[int] = before) -> int:
                return base + number if number >= 0 else before[-1 - number]

            for piece in inside.pieces:
                after = tuple([moved(number) for number in piece.after])
                self.pieces.append(
                    Piece(
                        name=piece.name, lane=piece.lane, duration_s=piece.duration_s, after=after
                    )
                )
            carried = [moved(number) for number in results]
        return carried

    def _add(self, name: str, lane: Lane | None, duration_s: float, after: Sequence[int]) -> int:
        self.pieces.append(Piece(name=name, lane=lane, duration_s=duration_s, after=tuple(after)))
        return len(self.pieces) - 1


def play(pieces: Sequence[Piece]) -> list[Event]:
    """When does each piece begin and end? In the order of their ends."""
    waiting = [len(set(piece.after)) for piece in pieces]
    followers: list[list[int]] = [[] for _ in pieces]
    queues: dict[Lane, deque[int]] = defaultdict(deque)
    for number, piece in enumerate(pieces):
        for before in set(piece.after):
            followers[before].append(number)
        if piece.lane is not None:
            queues[piece.lane].append(number)
    busy: set[Lane] = set()
    running: list[tuple[float, int, float]] = []
    events: list[Event] = []

    def begin(number: int, now_s: float) -> None:
        lane = pieces[number].lane
        if waiting[number]:
            return
        if lane is not None:
            if lane in busy or not queues[lane] or queues[lane][0] != number:
                return
            busy.add(lane)
            queues[lane].popleft()
        heapq.heappush(running, (now_s + pieces[number].duration_s, number, now_s))

    for queue in queues.values():
        if queue:
            begin(queue[0], 0.0)
    while running:
        now_s, number, start_s = heapq.heappop(running)
        piece = pieces[number]
        if piece.lane is not None:
            events.append(Event(name=piece.name, lane=piece.lane, start_s=start_s, end_s=now_s))
            busy.discard(piece.lane)
            if queues[piece.lane]:
                begin(queues[piece.lane][0], now_s)
        for follower in followers[number]:
            waiting[follower] -= 1
            begin(follower, now_s)
    return events


def step_time_s(events: Sequence[Event]) -> float:
    """When the last piece ends."""
    return max((event.end_s for event in events), default=0.0)


def one(seconds: float) -> Times:
    """A duration for one case."""
    return np.array([seconds])
