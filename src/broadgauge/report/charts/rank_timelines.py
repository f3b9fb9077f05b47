"""What does each rank do while a checkpoint is saved, or a model loaded? A line for each, its parts
one after the other."""

from collections.abc import Iterator, Sequence

from broadgauge.report.charts.parts import (
    INK,
    Spec,
    bar_label,
    bars_axis,
    bars_height,
    frame,
    linear_ticks,
    printed_axis,
    rows_of,
    tips,
)
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.specs.records.file_access_row import FileAccessRow
from broadgauge.specs.units import show_time

MAX_RANKS = 8
"""Of a case, the slowest ones."""
_COLOURS = {
    "state dict": "#9aa5b1",
    "open": "#3c6e47",
    "read": "#3a7ca5",
    "deserialise": "#e0a13a",
    "broadcast": "#c8553d",
    "copy": "#8a5fb0",
    "close": "#b58ad6",
    "other ranks": "#7fb069",
    "gather": "#c8553d",
    "device to host": "#8a5fb0",
    "stage": "#b58ad6",
    "hand over": "#d9a0c0",
    "plan": "#5b6470",
    "save_file": "#6fb1d6",
    "serialise": "#e0a13a",
    "write": "#3a7ca5",
    "fsync": "#1f4e6e",
    "metadata": "#7fb069",
    "fsync folder": "#3c6e47",
}


def rank_timelines(run: RunSummary, cases: Sequence[CaseSummary], axis: str) -> Spec | None:
    """None where no case has parts of every rank. `axis`: the title of its times."""
    rows: list[Spec] = []
    stalls: list[Spec] = []
    for summary in cases:
        row = median_repetition(summary)
        if row is not None and row.stall_s is not None:
            for label, parts_s in _lines(bar_label(summary, run), row):
                rows += _parts(label, parts_s)
                if row.access == "write":
                    stalls.append({"case": label, "stall": row.stall_s})
    if not rows:
        return None
    ticks = linear_ticks(max(float(str(row["end"])) for row in rows))
    x: Spec = {
        "field": "start",
        "type": "quantitative",
        "scale": {"domain": [0, ticks[-1]], "nice": False},
        "axis": printed_axis(ticks, show_time, title=axis),
    }
    y = bars_axis(rows)
    names = [name for name in _COLOURS if any(row["part"] == name for row in rows)]
    colour = {
        "field": "part",
        "type": "nominal",
        "scale": {"domain": names, "range": [_COLOURS[name] for name in names]},
    }
    bars: Spec = {
        "data": rows_of(rows),
        "mark": {"type": "bar", "height": {"band": 0.62}},
        "encoding": {
            "x": x,
            "x2": {"field": "end"},
            "y": y,
            "color": colour,
            "tooltip": tips(case="case", part="part", time="words"),
        },
    }
    waits: Spec = {
        "data": rows_of(stalls),
        "mark": {"type": "tick", "thickness": 2.5, "color": INK, "height": {"band": 0.9}},
        "encoding": {"x": x | {"field": "stall"}, "y": y},
    }
    return frame([bars, waits] if stalls else [bars], height=bars_height(rows))


def median_repetition(summary: CaseSummary) -> FileAccessRow | None:
    """The one of all good trials that took as long as half of them, at most."""
    rows = [row for record in summary.good for row in record.file_accesses if row.parts_of_ranks]
    return sorted(rows, key=lambda row: row.time_s)[(len(rows) - 1) // 2] if rows else None


def _lines(label: str, row: FileAccessRow) -> Iterator[tuple[str, dict[str, float]]]:
    """The slowest ranks, in their order."""
    by_time = sorted(enumerate(row.parts_of_ranks), key=lambda each: -sum(each[1].values()))
    for rank, parts_s in sorted(by_time[:MAX_RANKS], key=lambda each: each[0]):
        yield (f"rank {rank}, {label}" if len(by_time) > 1 else label), parts_s


def _parts(label: str, parts_s: dict[str, float]) -> Iterator[Spec]:
    start = 0.0
    for part, seconds in parts_s.items():
        yield {
            "case": label,
            "part": part,
            "start": start,
            "end": start + seconds,
            "words": show_time(seconds),
        }
        start += seconds
