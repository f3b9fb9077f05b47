"""How does a step's time go with 1/bandwidth? The rungs with their intervals, and the curve."""

from collections.abc import Callable

from broadgauge.advise.ladders.ladder import Ladder
from broadgauge.predict.sensitivity.ladder import FittedRung, Sensitivity
from broadgauge.report.chart_parts import (
    COST_COLOUR,
    INK,
    PALETTE,
    Spec,
    frame,
    linear_ticks,
    printed_axis,
    rows_of,
    tips,
)
from broadgauge.report.ladder_words import answers, rung_name
from broadgauge.report.quantities import interval
from broadgauge.specs.units import show_rate, show_time

HEIGHT = 260
STEP = "step_time_s"


def ladder_words(ladder: Ladder) -> str:
    """The answers, and where something disagrees."""
    parts = [f"{title}: {words}." for title, words in answers(ladder)]
    return " ".join([*parts, *(f"Disagrees: {words}." for words in ladder.disagreements)])


def ladder_chart(ladder: Ladder) -> Spec | None:
    """Step time against the time that a gigabyte of payload takes; None without a curve."""
    found = ladder.found
    if found is None:
        return None
    rungs = [_row(rung) for rung in found.rungs]
    x_ticks = linear_ticks(max(8 / rung.payload_gbps for rung in found.rungs))
    y_ticks = linear_ticks(max(rung.step_s.high or rung.step_s.value for rung in found.rungs))
    x = _axis("x", x_ticks, "1 / bandwidth, as the time of 1 GB of payload", _seconds)
    y = _axis("y", y_ticks, "time of a step", show_time)
    tooltip = tips(rate="rate", time="words", interval="interval", by_the_curve="curve")
    layers: list[Spec] = [
        {
            "data": rows_of(_line(found, x_ticks[-1])),
            "mark": {"type": "line", "strokeWidth": 2, "color": PALETTE[0]},
            "encoding": {"x": x, "y": y},
        },
        {
            "data": rows_of([{"x": 0.0, "y": found.curve.base_s}]),
            "mark": {"type": "point", "filled": False, "size": 70, "color": PALETTE[0]},
            "encoding": {"x": x, "y": y},
        },
        {
            "mark": {"type": "rule", "strokeWidth": 2, "color": INK},
            "encoding": {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 50, "color": INK, "opacity": 1},
            "encoding": {"x": x, "y": y, "tooltip": tooltip},
        },
        *_predicted(ladder, x, y),
    ]
    return frame(layers, height=HEIGHT) | {"data": rows_of(rungs)}


def _seconds(value: float) -> str:
    """`150 s`, never in minutes: the axis is one scale."""
    return f"{value:g} s" if value >= 1 else show_time(value)


def _axis(field: str, ticks: list[float], title: str, printed: Callable[[float], str]) -> Spec:
    return {
        "field": field,
        "type": "quantitative",
        "scale": {"domain": [0, ticks[-1]], "nice": False},
        "axis": printed_axis(ticks, printed, title=title),
    }


def _row(rung: FittedRung) -> Spec:
    step = rung.step_s
    return {
        "x": 8 / rung.payload_gbps,
        "y": step.value,
        "low": step.value if step.low is None else step.low,
        "high": step.value if step.high is None else step.high,
        "rate": rung_name(rung),
        "words": show_time(step.value),
        "interval": interval(STEP, step),
        "curve": show_time(rung.fitted_s),
    }


def _line(found: Sensitivity, end: float) -> list[Spec]:
    """The curve's corners, from a network without limit on."""
    slowest = min(end, max(8 / rung.payload_gbps for rung in found.rungs))
    corners = sorted({0.0, found.curve.knee_s_per_gbyte, slowest})
    return [{"x": x, "y": found.curve.step_s(x)} for x in corners]


def _predicted(ladder: Ladder, x: Spec, y: Spec) -> list[Spec]:
    assert ladder.found is not None, "there is a curve"
    payload = {rung.rate_gbps: rung.payload_gbps for rung in ladder.found.rungs}
    rows: list[Spec] = [
        {
            "x": 8 / payload[each.rate_gbps],
            "y": each.step_s.value,
            "rate": show_rate(each.rate_gbps),
            "words": f"predicted {show_time(each.step_s.value)}",
        }
        for each in ladder.predicted
    ]
    if not rows:
        return []
    mark: Spec = {"type": "point", "shape": "cross", "size": 60, "color": COST_COLOUR}
    encoding: Spec = {"x": x, "y": y, "tooltip": tips(rate="rate", time="words")}
    return [{"data": rows_of(rows), "mark": mark, "encoding": encoding}]
