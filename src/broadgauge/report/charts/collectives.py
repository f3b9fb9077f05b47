"""How fast are the collectives by message size? A Vega-Lite specification a collective."""

from broadgauge.report.charts.parts import (
    Spec,
    decade_ticks,
    frame,
    network_colours,
    printed_axis,
    rows_of,
    tips,
)
from broadgauge.report.words.quantities import interval
from broadgauge.results.model import CaseSummary, CollectiveSummary, RunSummary
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.units import show_bandwidth, show_rate, show_size

DASHES = ([1, 0], [4, 2], [7, 2, 2, 2], [2, 3], [10, 4], [2, 1])
"""Whole first: most charts have one kind of case."""


def busbw_chart(run: RunSummary, op: str, dtype: str) -> Spec | None:
    """How fast is a collective by message size, and where would the line rate be?"""
    points = _busbw_points(run, op, dtype)
    if not points:
        return None
    lines = _line_rates(run, {str(point["network"]) for point in points})
    colour = network_colours(run, (point["network"] for point in points))
    x, y = _size_axis(points), _busbw_axis([*points, *lines])
    rules: Spec = {
        "data": rows_of(lines),
        "mark": {"type": "rule", "strokeDash": [1, 3], "strokeWidth": 1.4},
        "encoding": {"y": {"field": "busbw", "type": "quantitative"}, "color": colour},
    }
    layers = [
        rules,
        *_curves(points, x, y, colour),
        _line_words(lines, {"stroke": "white", "strokeWidth": 3, "strokeJoin": "round"}),
        _line_words(lines, {}, {"color": colour}),
    ]
    return frame(layers, height=300)


def _size_axis(points: list[Spec]) -> Spec:
    sizes = sorted({size for point in points if isinstance(size := point["size"], int)})
    return {
        "field": "size",
        "type": "quantitative",
        "scale": {"type": "log", "domain": [sizes[0], sizes[-1]], "nice": False, "padding": 8},
        "axis": printed_axis(
            sizes, show_size, title="message size", labelOverlap="greedy", labelSeparation=8
        ),
    }


def _busbw_axis(rows: list[Spec]) -> Spec:
    heights = [float(str(row["busbw"])) for row in rows]
    ticks = decade_ticks(min(heights), max(heights))
    return {
        "field": "busbw",
        "type": "quantitative",
        "scale": {"type": "log", "domain": [ticks[0], ticks[-1]]},
        "axis": printed_axis(ticks, show_bandwidth, title="busbw"),
    }


def _curves(points: list[Spec], x: Spec, y: Spec, colour: Spec) -> list[Spec]:
    """A curve a case; its colour is the network, its dashes what else the cases differ in."""
    variants = list(dict.fromkeys(str(point["variant"]) for point in points))
    dashes: Spec = {
        "field": "variant",
        "type": "nominal",
        "scale": {
            "domain": variants,
            "range": [DASHES[index % len(DASHES)] for index in range(len(variants))],
        },
        "legend": {"symbolType": "stroke", "symbolStrokeWidth": 2, "orient": "bottom"}
        if len(variants) > 1
        else None,
    }
    tooltip = tips(
        network="network", case="variant", size="size_words", busbw="words", interval="interval"
    )
    ends: Spec = {
        "data": rows_of(points),
        "mark": {"type": "rule", "strokeWidth": 1, "clip": True},
        "encoding": {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}, "color": colour},
    }
    curves: Spec = {
        "data": rows_of(points),
        "mark": {"type": "line", "strokeWidth": 2},
        "encoding": {"x": x, "y": y, "color": colour, "strokeDash": dashes},
    }
    dots: Spec = {
        "data": rows_of(points),
        "mark": {"type": "point", "size": 30, "filled": True, "opacity": 1},
        "encoding": {"x": x, "y": y, "color": colour, "tooltip": tooltip},
    }
    return [ends, curves, dots]


def _busbw_points(run: RunSummary, op: str, dtype: str) -> list[Spec]:
    found = [
        (summary, row)
        for summary in run.candidates
        for row in summary.collectives
        if (row.op, row.dtype) == (op, dtype) and row.busbw_gbyte_per_s.value > 0
    ]
    workloads = {summary.case.workload.name for summary, _ in found}
    return [
        {
            "network": summary.case.network_name,
            "variant": _variant(summary, row, has_workload=len(workloads) > 1),
            "size": row.size_bytes,
            "busbw": row.busbw_gbyte_per_s.value,
            **_ends(row.busbw_gbyte_per_s),
            "size_words": show_size(row.size_bytes),
            "words": show_bandwidth(row.busbw_gbyte_per_s.value),
            "interval": interval("busbw_gbyte_per_s", row.busbw_gbyte_per_s),
        }
        for summary, row in found
    ]


def _variant(summary: CaseSummary, row: CollectiveSummary, *, has_workload: bool) -> str:
    """`2x2`, `2x2 nccl-tests`: what the network's colour does not tell."""
    words = [summary.case.shape]
    if has_workload:
        words.append(summary.case.workload.name)
    if row.engine not in (*words, "torch"):
        words.append(row.engine)
    return " ".join(words)


def _line_words(lines: list[Spec], mark: Spec, encoding: Spec | None = None) -> Spec:
    """The line rates in words, at the left end: curves come near their line on the right."""
    place: Spec = {"type": "text", "align": "left", "baseline": "bottom", "dx": 4, "dy": -3}
    return {
        "data": rows_of(lines),
        "mark": place | mark,
        "encoding": {
            "y": {"field": "busbw", "type": "quantitative"},
            "x": {"value": 0},
            "text": {"field": "words"},
            **(encoding or {}),
        },
    }


def _ends(estimate: Estimate) -> Spec:
    """Ends of the interval; the value itself where there is none. Logs need them above 0."""
    low = estimate.value if estimate.low is None else estimate.low
    high = estimate.value if estimate.high is None else estimate.high
    return {"low": low if low > 0 else estimate.value / 2, "high": high}


def _line_rates(run: RunSummary, shown: set[str]) -> list[Spec]:
    """Of all NICs of a node, in their slower direction."""
    rates = {
        s.case.network_name: s.case.link.node_rate_gbps
        for s in run.candidates
        if s.case.link is not None and s.collectives and s.case.network_name in shown
    }
    return [
        {"network": name, "busbw": rate / 8, "words": f"line rate {show_rate(rate)}"}
        for name, rate in rates.items()
        if rate is not None
    ]
