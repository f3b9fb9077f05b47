"""What ran at each moment? A rank's time cut wherever anything begins or ends.

Between two cuts nothing changes, so a question about time is one about an array with an entry a
piece. Sorting is the dearest part: n log n in the number of spans.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from broadgauge.traces.trace import Spans, Times

Mask = npt.NDArray[np.bool_]
"""`bool[pieces]`."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moments:
    """Pieces of time, `edges_ns[i]` to `edges_ns[i + 1]`."""

    edges_ns: Times

    def __len__(self) -> int:
        return len(self.edges_ns) - 1

    @property
    def length_ns(self) -> Times:
        return np.diff(self.edges_ns)

    def covering(self, start_ns: Times, end_ns: Times) -> npt.NDArray[np.int64]:
        """How many of these spans run in each piece? Their ends are among the edges, or outside."""
        change = np.zeros(len(self.edges_ns), dtype=np.int64)
        for times, by in ((start_ns, 1), (end_ns, -1)):
            place = np.minimum(np.searchsorted(self.edges_ns, times), len(self))
            change += by * np.bincount(place, minlength=len(change))
        running: npt.NDArray[np.int64] = np.cumsum(change)[:-1]
        return running

    def any_of(self, spans: Spans, which: Mask | None = None) -> Mask:
        """In which pieces does any of them run?"""
        chosen = spans if which is None else spans.only(which)
        return self.covering(chosen.start_ns, chosen.end_ns) > 0

    def within(self, weight: npt.NDArray[np.float64] | Mask, start: Times, end: Times) -> Times:
        """How many nanoseconds of the pieces that the weight names lie in each span?

        `weight` is a share of each piece, 0 to 1; ends of spans are edges, or outside.
        """
        total = np.concatenate([[0.0], np.cumsum(self.length_ns * weight)])
        first, last = np.searchsorted(self.edges_ns, start), np.searchsorted(self.edges_ns, end)
        most = len(self)
        inside = total[np.minimum(last, most)] - total[np.minimum(first, most)]
        found: Times = np.rint(inside).astype(np.int64)
        return found


def cut(begin_ns: int, end_ns: int, times: Iterable[Times]) -> Moments:
    """Pieces from begin to end, cut at all of these times that lie between."""
    together = np.concatenate([np.array([begin_ns, end_ns]), *times])
    inside = together[(together >= begin_ns) & (together <= end_ns)]
    return Moments(edges_ns=np.unique(inside))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Nesting:
    """Which span was the innermost, over time: from `since_ns[i]` on it was `innermost[i]`.

    `inherited[i]` is the label of the innermost span that has one; −1: none.
    """

    since_ns: Times
    innermost: npt.NDArray[np.int64]
    inherited: npt.NDArray[np.int64]

    def at(self, moments: Moments) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """For each piece the innermost span and the inherited label; −1 for none."""
        place = np.searchsorted(self.since_ns, moments.edges_ns[:-1], side="right") - 1
        nothing = place < 0
        place = np.maximum(place, 0)
        if not len(self.since_ns):
            empty = np.full(len(moments), -1)
            return empty, empty
        return (
            np.where(nothing, -1, self.innermost[place]),
            np.where(nothing, -1, self.inherited[place]),
        )


def nesting(spans: Spans, labels: Sequence[int] | npt.NDArray[np.int64]) -> Nesting:
    """The innermost of one thread's spans over time; `labels` has one a span, −1 for none.

    Spans come sorted by start, the longer first. One that outlasts the one it began in is cut at
    its end: of a thread's own that does not happen.
    """
    since: list[int] = []
    innermost: list[int] = []
    inherited: list[int] = []
    stack: list[tuple[int, int, int]] = []  # end, span, label

    def note(time: int) -> None:
        _, span, label = stack[-1] if stack else (0, -1, -1)
        since.append(time)
        innermost.append(span)
        inherited.append(label)

    ends, own = spans.end_ns.tolist(), np.asarray(labels).tolist()
    for span, start in enumerate(spans.start_ns.tolist()):
        while stack and stack[-1][0] <= start:
            left, *_ = stack.pop()
            note(left)
        end = min(ends[span], stack[-1][0]) if stack else ends[span]
        label = own[span] if own[span] >= 0 or not stack else stack[-1][2]
        stack.append((end, span, label))
        note(start)
    while stack:
        left, *_ = stack.pop()
        note(left)
    return Nesting(
        since_ns=np.array(since, dtype=np.int64),
        innermost=np.array(innermost, dtype=np.int64),
        inherited=np.array(inherited, dtype=np.int64),
    )
