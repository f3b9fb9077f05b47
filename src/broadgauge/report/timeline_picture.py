"""What did each rank do when? Strips that stand without a script, and can be zoomed with one.

Each strip is an SVG as wide as its place, and the script changes which part of its time it shows:
what is drawn is all that is known, so nothing is loaded, and nothing stands in the page twice.
"""

from collections.abc import Iterator

from broadgauge.report.chart_parts import COST_COLOUR, PALETTE, linear_ticks
from broadgauge.report.charts_traced import COLOURS
from broadgauge.report.markup import Html, tag
from broadgauge.report.step_parts import PART_WORDS
from broadgauge.specs.units import show_time
from broadgauge.traces.timeline import RankTrack, TracedTimeline
from broadgauge.traces.tracks import KINDS, OVERLAPPED, Track, TrackPieces

WIDTH, HEIGHT = 1_000_000, 16
"""Units of a strip. Browsers compute with 24 bits: a millionth of the time is told apart."""
LAST_TICK_RATIO = 0.95
"""The words of a later tick would be cut."""
MOST_DRAWN_PIECES = 12_000
"""Of all timelines of a page: some 0.2 MB."""
TIMELINE_MARK = '<figure class="timeline"'
"""How a page knows that it needs the script."""
KIND_WORDS = PART_WORDS | {
    "communication": "communication",
    OVERLAPPED: "communication beside compute",
}
KIND_COLOURS = COLOURS | {"communication": COST_COLOUR, OVERLAPPED: PALETTE[5]}
TRACK_WORDS = {
    Track.STEP: "step",
    Track.COMPUTE: "compute",
    Track.COMMUNICATION: "communication",
    Track.OVERLAPPED: "overlapped",
    Track.LOADING: "data, checkpoint",
}
HOW = (
    "Lines end steps. Each rank's time begins at its own first step: ranks' clocks are not one. "
    "Where pieces are shorter than can be shown, height is their share of the time."
)
KEYS = (
    "Drag or ← → to move, + − or Ctrl and the wheel to zoom, double click to zoom in, 0 for all "
    "of it."
)


def timeline_figure(timeline: TracedTimeline, title: str, *, most_pieces: int) -> Html:
    """Ranks × tracks under one axis of time."""
    shown = timeline.thinned(most_pieces)
    more = f" {shown.num_left_out} more ranks are not shown." if shown.num_left_out else ""
    caption = tag("figcaption", title, tag("span", HOW, more, class_="how"))
    rows = [
        tag("div", list(_rank(shown, rank)), class_="timeline-rank") for rank in shown.step_ends_ns
    ]
    span_s = shown.span_ns / 1e9
    return tag(
        "figure",
        caption,
        _legend(shown),
        tag("div", class_="timeline-tools", data_keys=KEYS),
        tag("div", rows, _axis(span_s), class_="timeline-strips", data_span_s=repr(span_s)),
        class_="timeline",
        role="group",
    )


def _rank(timeline: TracedTimeline, rank: int) -> Iterator[Html]:
    yield tag("b", f"rank {rank}", class_="timeline-name")
    ends = timeline.step_ends_ns[rank]
    for each in timeline.tracks:
        if each.rank == rank:
            yield tag("span", TRACK_WORDS[each.track], class_="timeline-label")
            yield _strip(each, ends, timeline.span_ns)


def _strip(track: RankTrack, step_ends_ns: tuple[int, ...], span_ns: int) -> Html:
    scale = WIDTH / max(1, span_ns)
    drawn = [
        tag("path", d=path, fill=KIND_COLOURS[kind], data_words=KIND_WORDS[kind])
        for kind, path in _paths(track.pieces, scale)
    ]
    lines = "".join(f"M{round(end * scale)} 0v{HEIGHT}" for end in step_ends_ns)
    return tag(
        "svg",
        drawn,
        tag("path", d=lines, class_="timeline-end"),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        preserveAspectRatio="none",
        class_=f"timeline-strip {track.track}",
        aria_hidden="true",
    )


def _paths(pieces: TrackPieces, scale: float) -> Iterator[tuple[str, str]]:
    """Of each kind one path, of a rectangle a piece; kinds that share a slot stand on each other.

    A rectangle is `m x y h w v h h -w z`, and begins where the one before did.
    """
    found: dict[int, list[str]] = {}
    last: dict[int, tuple[int, int]] = {}
    slot, taken = -1, 0.0
    columns = (pieces.start_ns, pieces.end_ns, pieces.kind, pieces.share)
    for start, end, kind, share in zip(*(column.tolist() for column in columns), strict=True):
        taken = 0.0 if start != slot else taken
        slot = start
        x, width = round(start * scale), max(1, round(end * scale) - round(start * scale))
        below = max(1, HEIGHT - round(HEIGHT * taken))
        taken += share
        y = min(below - 1, HEIGHT - round(HEIGHT * min(1.0, taken)))
        before_x, before_y = last.get(kind, (0, 0))
        begin = "m" if kind in last else "M"
        found.setdefault(kind, []).append(
            f"{begin}{x - before_x} {y - before_y}h{width}v{below - y}h-{width}z"
        )
        last[kind] = (x, y)
    for kind, path in sorted(found.items()):
        yield KINDS[kind], "".join(path)


def _legend(timeline: TracedTimeline) -> Html:
    """The kinds that are there; one colour is named once."""
    there = {place for each in timeline.tracks for place in each.pieces.kind.tolist()}
    kinds = [kind for place, kind in enumerate(KINDS) if place in there]
    if "exposed_communication" in kinds and "communication" in kinds:
        kinds.remove("exposed_communication")
    marks = [
        tag("li", tag("i", style=f"background:{KIND_COLOURS[kind]}"), KIND_WORDS[kind])
        for kind in kinds
    ]
    return tag("ul", marks, class_="timeline-legend")


def _axis(span_s: float) -> Html:
    """The ticks of all of the time; the script draws those of a part."""
    ticks = [
        tag(
            "span",
            show_time(tick) if tick else "0",
            style=f"left:{100 * tick / span_s:.3f}%",
        )
        for tick in linear_ticks(span_s)
        if tick <= LAST_TICK_RATIO * span_s
    ]
    return tag("div", ticks, class_="timeline-axis")
