"""What did a rank do when, as rows of a picture? From what ran at each moment."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from broadgauge.traces.attribution.activity import TracedActivity
from broadgauge.traces.explanation import StepPart
from broadgauge.traces.tracks import KINDS, OVERLAPPED, Track, TrackPieces, pieces_of

_PLACE = {kind: np.int8(place) for place, kind in enumerate(KINDS)}
_NOTHING = np.int8(-1)


def tracks_of(
    activity: TracedActivity, part: npt.NDArray[np.int8], *, is_compared: bool
) -> Mapping[Track, TrackPieces]:
    """Each row that has a piece. `part` is of each moment what it goes to.

    Where ranks were not compared, waiting is not told from moving: all of it is communication.
    """
    works = activity.compute | activity.fsdp_copies
    waiting = _PLACE["straggler_wait"] if is_compared else _PLACE["communication"]
    if not is_compared:
        place = {name: _PLACE[name] for name in ("straggler_wait", "exposed_communication")}
        is_waiting = part == place["straggler_wait"]
        part = np.where(is_waiting, place["exposed_communication"], part).astype(np.int8)
    sent = np.where(activity.moving, _PLACE["communication"], waiting)
    kinds = {
        Track.STEP: part,
        Track.COMPUTE: np.where(activity.compute, _PLACE[StepPart.COMPUTE], _copied(activity)),
        Track.COMMUNICATION: np.where(activity.communication, sent, _NOTHING),
        Track.OVERLAPPED: np.where(activity.communication & works, _PLACE[OVERLAPPED], _NOTHING),
        Track.LOADING: activity.waits,
    }
    edges = activity.moments.edges_ns
    found = {
        track: pieces_of(edges, kind.astype(np.int8), begin_ns=int(edges[0]))
        for track, kind in kinds.items()
    }
    return {track: pieces for track, pieces in found.items() if len(pieces)}


def _copied(activity: TracedActivity) -> npt.NDArray[np.int8]:
    return np.where(activity.fsdp_copies, _PLACE[StepPart.FSDP_COPIES], _NOTHING)
