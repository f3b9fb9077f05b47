"""What did one rank do when, as pieces of time? All of them, or fewer that say the same."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from broadgauge.traces.trace import Times

OVERLAPPED = "overlapped_communication"
KINDS = (
    *("compute", "fsdp_copies", "exposed_communication", "straggler_wait"),
    *("data_wait", "checkpoint", "host_idle", "other", "communication", OVERLAPPED),
)
"""What a piece is: the parts of a step in their order (`StepPart`), then communication whether or
not it is hidden, and what of it is. Stored by their place: new ones come last."""


class Track(StrEnum):
    """A row of pieces of one rank. Stored by their place: new ones come last."""

    STEP = "step"
    """The part that each moment goes to; pieces touch each other."""
    COMPUTE = "compute"
    """Computing and FSDP's copies."""
    COMMUNICATION = "communication"
    """Collectives, hidden or not: those that move, and those that wait for a late rank."""
    OVERLAPPED = "overlapped"
    """Collectives beside computing or copying."""
    LOADING = "loading"
    """The CPU loads data or saves a checkpoint, hidden or not."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrackPieces:
    """`start_ns`, `end_ns`: `int64[n]`, from the rank's first step on; `kind`: a place in `KINDS`.

    `share`: how much of the piece its kind takes, above 0 to 1; below 1 where shorter pieces were
    put together. Laws: starts never fall; pieces of one kind do not overlap.
    """

    start_ns: Times
    end_ns: Times
    kind: npt.NDArray[np.int8]
    share: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.start_ns)

    def total_ns(self) -> npt.NDArray[np.float64]:
        """Of each kind: what thinning keeps."""
        length = (self.end_ns - self.start_ns) * self.share
        found: npt.NDArray[np.float64] = np.zeros(len(KINDS))
        np.add.at(found, self.kind, length)
        return found

    def thinned(self, most: int, span_ns: int) -> "TrackPieces":
        """At most so many: as they are, or one a kind in each of equally long slots of the span.

        Time is n in the number of pieces: each is cut at the ends of slots by two look-ups.
        """
        if len(self) <= most:
            return self
        kinds = np.unique(self.kind)
        num_slots = max(1, most // len(kinds))
        edges = np.linspace(0, span_ns, num_slots + 1).astype(np.int64)
        found = [self._slots(kind, edges) for kind in kinds]
        starts = np.concatenate([each.start_ns for each in found])
        order = np.argsort(starts, kind="stable")
        return TrackPieces(
            start_ns=starts[order],
            end_ns=np.concatenate([each.end_ns for each in found])[order],
            kind=np.concatenate([each.kind for each in found])[order],
            share=np.concatenate([each.share for each in found])[order],
        )

    def _slots(self, kind: np.int8, edges: Times) -> "TrackPieces":
        """One kind's time in each slot; full ones that touch are one piece."""
        own = self.kind == kind
        starts, ends, share = self.start_ns[own], self.end_ns[own], self.share[own]
        before = np.concatenate([[0.0], np.cumsum((ends - starts) * share)])
        place = np.searchsorted(starts, edges, side="right") - 1
        at = np.maximum(place, 0)
        inside = np.clip(edges - starts[at], 0, ends[at] - starts[at]) * share[at]
        until = np.where(place < 0, 0.0, before[at] + inside)
        length = np.diff(edges)
        ratio = np.minimum(1.0, np.diff(until) / np.maximum(1, length))
        is_first = ratio > 0
        is_full = ratio >= 1
        is_first[1:] &= ~(is_full[1:] & is_full[:-1])
        first = np.flatnonzero(is_first)
        run = np.cumsum(is_first) - 1
        last = first.copy()
        used = np.flatnonzero(ratio > 0)
        np.maximum.at(last, run[used], used)
        return TrackPieces(
            start_ns=edges[first],
            end_ns=edges[last + 1],
            kind=np.full(len(first), kind, dtype=np.int8),
            share=ratio[first],
        )


def pieces_of(edges_ns: Times, kind: npt.NDArray[np.int8], *, begin_ns: int) -> TrackPieces:
    """From moments that touch each other: neighbours of a kind are one piece; −1: nothing.

    `edges_ns` is `int64[n + 1]`, `kind` `int8[n]`.
    """
    is_first = np.ones(len(kind), dtype=bool)
    is_first[1:] = np.diff(kind) != 0
    first = np.flatnonzero(is_first)
    starts, ends = edges_ns[first], np.append(edges_ns[first[1:]], edges_ns[-1:])
    there = kind[first] >= 0
    return TrackPieces(
        start_ns=starts[there] - begin_ns,
        end_ns=ends[there] - begin_ns,
        kind=kind[first][there].astype(np.int8),
        share=np.ones(int(there.sum())),
    )
