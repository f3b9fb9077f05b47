"""Proves the rows of the picture: they say what the parts say, however few pieces are left."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.traces import jobs

from broadgauge.traces.attribution.explaining import explain
from broadgauge.traces.explanation import StepPart, TraceExplanation
from broadgauge.traces.reading.reader import read_trace
from broadgauge.traces.timeline import MOST_RANKS, timeline_from_rows, timeline_of
from broadgauge.traces.tracks import KINDS, Track, TrackPieces, pieces_of


def explained(folder: Path, job: jobs.Job) -> TraceExplanation:
    return explain(read_trace(path) for path in job.write(folder))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> TraceExplanation:
    return explained(tmp_path_factory.mktemp("job"), jobs.fsdp2())


def times(pieces: TrackPieces) -> dict[str, float]:
    return dict(zip(KINDS, pieces.total_ns().tolist(), strict=True))


def test_kinds_are_the_parts_in_their_order_and_more() -> None:
    assert KINDS[: len(StepPart)] == tuple(map(str, StepPart))


def test_tracks_say_what_the_parts_say(found: TraceExplanation) -> None:
    for rank in found.ranks:
        step = times(rank.tracks[Track.STEP])
        assert [step[part] for part in StepPart] == [rank.parts.of(part) for part in StepPart]
        overlapped = sum(each.overlapped_communication_ns for each in rank.steps)
        assert times(rank.tracks[Track.OVERLAPPED])["overlapped_communication"] == overlapped
        sent = times(rank.tracks[Track.COMMUNICATION])
        waited = rank.parts.straggler_wait_ns or 0
        assert sent["communication"] + sent["straggler_wait"] == (
            rank.parts.exposed_communication_ns + waited + overlapped
        )
        compute = times(rank.tracks[Track.COMPUTE])
        assert compute["compute"] == rank.parts.compute_ns
        assert Track.LOADING in rank.tracks


def test_of_one_rank_alone_no_wait_is_shown(found: TraceExplanation, tmp_path: Path) -> None:
    path = jobs.ddp(late_us=(0, 900)).write(tmp_path)[0]
    (rank,) = explain([read_trace(path)]).ranks
    step = times(rank.tracks[Track.STEP])
    assert step["straggler_wait"] == 0
    assert step["exposed_communication"] == rank.parts.exposed_communication_ns


def test_a_picture_has_few_ranks_and_the_late_one_among_them(tmp_path: Path) -> None:
    late_us = (0,) * (MOST_RANKS + 1) + (700,)
    found = explained(tmp_path, jobs.ddp(num_ranks=len(late_us), late_us=late_us, steps=1))
    timeline = timeline_of(found)
    assert list(timeline.step_ends_ns) == [*range(MOST_RANKS - 1), len(late_us) - 1]
    assert timeline.num_left_out == 2


def test_rows_are_kept_as_they_are(found: TraceExplanation) -> None:
    timeline = timeline_of(found)
    read = timeline_from_rows(timeline.rows())
    assert read is not None
    assert read.step_ends_ns == timeline.step_ends_ns
    assert [(each.rank, each.track) for each in read.tracks] == [
        (each.rank, each.track) for each in timeline.tracks
    ]
    for one, other in zip(read.tracks, timeline.tracks, strict=True):
        assert times(one.pieces) == times(other.pieces)


@pytest.mark.parametrize(
    "rows", [np.zeros((0, 6)), np.zeros((3, 5)), np.full((1, 6), 99.0), np.full((1, 6), np.nan)]
)
def test_rows_of_another_form_are_no_timeline(rows: np.ndarray) -> None:
    assert timeline_from_rows(rows) is None


def test_a_thinned_picture_is_bounded_and_keeps_all_time(tmp_path: Path) -> None:
    timeline = timeline_of(explained(tmp_path, jobs.fsdp2(layers=60)))
    total = sum(len(each.pieces) for each in timeline.tracks)
    few = timeline.thinned(400)
    assert total > 1500
    assert sum(len(each.pieces) for each in few.tracks) <= 400
    for one, other in zip(timeline.tracks, few.tracks, strict=True):
        assert times(other.pieces) == pytest.approx(times(one.pieces))
        assert (np.diff(other.pieces.start_ns) >= 0).all()


@settings(max_examples=50, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 1000), min_size=1, max_size=60),
    kinds=st.lists(st.integers(-1, 3), min_size=60, max_size=60),
    most=st.integers(4, 40),
)
def test_thinning_keeps_the_time_of_each_kind(
    lengths: list[int], kinds: list[int], most: int
) -> None:
    edges = np.concatenate([[0], np.cumsum(lengths)]) + 5
    pieces = pieces_of(edges, np.array(kinds[: len(lengths)], dtype=np.int8), begin_ns=5)
    few = pieces.thinned(most, int(edges[-1] - 5))
    assert len(few) <= max(most, 4)
    assert few.total_ns() == pytest.approx(pieces.total_ns())
    assert ((few.share > 0) & (few.share <= 1)).all()
    twice = few.thinned(4, int(edges[-1] - 5))
    assert twice.total_ns() == pytest.approx(pieces.total_ns())
