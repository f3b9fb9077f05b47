"""What did each rank do when? Rows of a picture that can be zoomed, and is small for any trace."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from broadgauge.traces.explanation import TraceExplanation
from broadgauge.traces.tracks import KINDS, Track, TrackPieces

MOST_STORED_PIECES = 8_000
"""Kept of a trial: 0.4 MB in a file, and a tenth of a report as text."""
MOST_RANKS = 8
"""Rows of more can't be compared by eye; those that others wait for are among them."""
_STEPS = -1
"""The track of the steps themselves: a piece each, of no kind."""


class _Column(IntEnum):
    """Of a row, as results keep it."""

    RANK = 0
    TRACK = 1
    KIND = 2
    START_S = 3
    END_S = 4
    SHARE = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankTrack:
    """One row of the picture. `pieces` begin at the rank's own first step."""

    rank: int
    track: Track
    pieces: TrackPieces


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TracedTimeline:
    """Ranks × tracks. Each rank's time begins at its first step, since clocks are not one.

    Law: `step_ends_ns[rank]` rises; `num_left_out` ranks were explained and are not shown.
    """

    tracks: tuple[RankTrack, ...]
    step_ends_ns: dict[int, tuple[int, ...]]
    num_left_out: int = 0

    @property
    def span_ns(self) -> int:
        return max(ends[-1] for ends in self.step_ends_ns.values())

    def thinned(self, most_pieces: int) -> "TracedTimeline":
        """With so many pieces at most (ten for each track are always kept); times stay true."""
        most = max(10, most_pieces // max(1, len(self.tracks)))
        tracks = tuple(
            RankTrack(
                rank=each.rank, track=each.track, pieces=each.pieces.thinned(most, self.span_ns)
            )
            for each in self.tracks
        )
        return TracedTimeline(
            tracks=tracks, step_ends_ns=self.step_ends_ns, num_left_out=self.num_left_out
        )

    def rows(self) -> npt.NDArray[np.float64]:
        """`float64[n, 6]`, by `_Column`: how results keep it."""
        rows = [
            (float(rank), float(_STEPS), -1.0, begin / 1e9, end / 1e9, 1.0)
            for rank, ends in self.step_ends_ns.items()
            for begin, end in zip((0, *ends), ends, strict=False)
        ]
        places = tuple(Track)
        tables = [np.array(rows).reshape(-1, len(_Column))]
        for each in self.tracks:
            table = np.empty((len(each.pieces), len(_Column)))
            table[:, _Column.RANK] = each.rank
            table[:, _Column.TRACK] = places.index(each.track)
            table[:, _Column.KIND] = each.pieces.kind
            table[:, _Column.START_S] = each.pieces.start_ns / 1e9
            table[:, _Column.END_S] = each.pieces.end_ns / 1e9
            table[:, _Column.SHARE] = each.pieces.share
            tables.append(table)
        return np.concatenate(tables)


def timeline_of(found: TraceExplanation) -> TracedTimeline:
    """Every piece of the ranks that are shown."""
    late = {each.rank for each in found.stragglers[:2]}
    chosen = sorted(found.ranks, key=lambda rank: (rank.rank not in late, rank.rank or 0))
    shown = sorted(chosen[:MOST_RANKS], key=lambda rank: rank.rank or 0)
    ends = {}
    tracks = []
    for rank in shown:
        number, begin = rank.rank or 0, rank.steps[0].start_ns
        ends[number] = tuple(step.end_ns - begin for step in rank.steps)
        for track, pieces in rank.tracks.items():
            tracks.append(RankTrack(rank=number, track=track, pieces=pieces))
    return TracedTimeline(
        tracks=tuple(tracks),
        step_ends_ns=ends,
        num_left_out=len(found.ranks) - len(shown),
    )


def timeline_from_rows(
    rows: npt.NDArray[np.float64], *, num_left_out: int = 0
) -> TracedTimeline | None:
    """As `rows` gave them; None where they are no timeline, as of a later version."""
    if rows.ndim != 2 or rows.shape[1] != len(_Column) or not np.isfinite(rows).all():
        return None
    track, kind = rows[:, _Column.TRACK], rows[:, _Column.KIND]
    is_step = track == _STEPS
    places = tuple(Track)
    known = is_step | ((track >= 0) & (track < len(places)) & (kind >= 0) & (kind < len(KINDS)))
    if not is_step.any() or not known.all():
        return None
    times = np.rint(rows[:, (_Column.START_S, _Column.END_S)] * 1e9).astype(np.int64)
    ends: dict[int, tuple[int, ...]] = {}
    tracks = []
    for rank in np.unique(rows[is_step, _Column.RANK]).astype(int).tolist():
        of_rank = rows[:, _Column.RANK] == rank
        ends[rank] = tuple(times[of_rank & is_step, 1].tolist())
        for place in np.unique(track[of_rank & ~is_step]).astype(int).tolist():
            own = of_rank & (track == place)
            pieces = TrackPieces(
                start_ns=times[own, 0],
                end_ns=times[own, 1],
                kind=kind[own].astype(np.int8),
                share=rows[own, _Column.SHARE],
            )
            tracks.append(RankTrack(rank=rank, track=places[place], pieces=pieces))
    return TracedTimeline(tracks=tuple(tracks), step_ends_ns=ends, num_left_out=num_left_out)
