"""How fast are the collectives by message size? A Vega-Lite specification a collective."""

from broadgauge.report.chart_parts import (
    Spec,
    decade_ticks,
    frame,
    network_colours,
    printed_axis,
    rows_of,
    tips,
)
from broadgauge.report.quantities import interval
from broadgauge.results.model import RunSummary
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.units import show_bandwidth, show_rate, show_size


def busbw_chart(run: RunSummary, op: str, dtype: str) -> Spec | None:
    """How fast is a collective by message size, and where would the line rate be?"""
    points, lines = _busbw_points(run, op, dtype), _line_rates(run)
    if not points:
        return None
    sizes = sorted({size for point in points if isinstance(size := point["size"], int)})
    heights = [float(str(row["busbw"])) for row in (*points, *lines)]
    ticks = decade_ticks(min(heights), max(heights))
    x: Spec = {
        "field": "size",
        "type": "quantitative",
        "scale": {"type": "log", "domain": [sizes[0], sizes[-1]], "nice": False, "padding": 8},
        "axis": printed_axis(
            sizes, show_size, title="message size", labelOverlap="greedy", labelSeparation=8
        ),
    }
    y: Spec = {
        "field": "busbw",
        "type": "quantitative",
        "scale": {"type": "log", "domain": [ticks[0], ticks[-1]]},
        "axis": printed_axis(ticks, show_bandwidth, title="busbw"),
    }
    colour = network_colours(run, (point["network"] for point in points))
    rule_y: Spec = {"field": "busbw", "type": "quantitative"}
    layers: list[Spec] = [
        {
            "data": rows_of(lines),
            "mark": {"type": "rule", "strokeDash": [5, 4], "strokeWidth": 1.2},
            "encoding": {"y": rule_y, "color": colour},
        },
        {
            "data": rows_of(points),
            "mark": {"type": "rule", "strokeWidth": 1, "clip": True},
            "encoding": {
                "x": x,
                "y": y | {"field": "low"},
                "y2": {"field": "high"},
                "color": colour,
            },
        },
        {
            "data": rows_of(points),
            "mark": {"type": "line", "strokeWidth": 2, "point": {"size": 36, "filled": True}},
            "encoding": {
                "x": x,
                "y": y,
                "color": colour,
                "tooltip": tips(
                    network="network", size="size_words", busbw="words", interval="interval"
                ),
            },
        },
        _line_words(lines, {"stroke": "white", "strokeWidth": 3, "strokeJoin": "round"}),
        _line_words(lines, {}, {"color": colour}),
    ]
    return frame(layers, height=300)


def _busbw_points(run: RunSummary, op: str, dtype: str) -> list[Spec]:
    return [
        {
            "network": summary.case.network_name,
            "size": row.size_bytes,
            "busbw": row.busbw_gbyte_per_s.value,
            **_ends(row.busbw_gbyte_per_s),
            "size_words": show_size(row.size_bytes),
            "words": show_bandwidth(row.busbw_gbyte_per_s.value),
            "interval": interval("busbw_gbyte_per_s", row.busbw_gbyte_per_s),
        }
        for summary in run.cases
        for row in summary.collectives
        if (row.op, row.dtype) == (op, dtype) and row.busbw_gbyte_per_s.value > 0
    ]


def _line_words(lines: list[Spec], mark: Spec, encoding: Spec | None = None) -> Spec:
    """The line rates in words, at the right end, over the curves."""
    place: Spec = {"type": "text", "align": "right", "baseline": "bottom", "dy": -2}
    return {
        "data": rows_of(lines),
        "mark": place | mark,
        "encoding": {
            "y": {"field": "busbw", "type": "quantitative"},
            "x": {"value": "width"},
            "text": {"field": "words"},
            **(encoding or {}),
        },
    }


def _ends(estimate: Estimate) -> Spec:
    """Ends of the interval; the value itself where there is none. Logs need them above 0."""
    low = estimate.value if estimate.low is None else estimate.low
    high = estimate.value if estimate.high is None else estimate.high
    return {"low": low if low > 0 else estimate.value / 2, "high": high}


def _line_rates(run: RunSummary) -> list[Spec]:
    rates = {
        s.case.link.name: s.case.link.rate_gbps
        for s in run.cases
        if s.case.link is not None and s.collectives
    }
    return [
        {"network": name, "busbw": rate / 8, "words": f"line rate {show_rate(rate)}"}
        for name, rate in rates.items()
        if rate is not None
    ]
