"""How does a step's time go with the link's rate? The rungs with their intervals, and the curve."""

import math

from broadgauge.advise.ladders.ladder import Ladder
from broadgauge.predict.sensitivity.curve import Form
from broadgauge.predict.sensitivity.ladder import FittedRung, Sensitivity
from broadgauge.report.charts.parts import (
    COST_COLOUR,
    FAINT,
    INK,
    PALETTE,
    Spec,
    frame,
    log_ticks,
    printed_axis,
    rows_of,
    tips,
)
from broadgauge.report.words.ladder import answers, rates_note, rung_name
from broadgauge.report.words.quantities import interval
from broadgauge.specs.units import show_rate, show_time

HEIGHT = 260
STEP = "step_time_s"
CURVE_POINTS = 60
"""A straight line over 1/rate is bent on logarithmic axes."""
MARGIN = 1.15
"""How many times beyond the slowest and the fastest rung the axis goes on."""
LABEL_SHARE = 0.22
"""Of the axis, which the word `unshaped` takes on a phone: no other label stands there."""
LEAST_SHARE = 0.25
"""Of a step's time, at which an interval is cut off that reaches further down, or below 0."""


def ladder_words(ladder: Ladder) -> str:
    """The answers, and where something disagrees."""
    parts = [f"{title}: {words}." for title, words in answers(ladder)]
    parts += [f"Disagrees: {words}." for words in ladder.disagreements]
    note = rates_note(ladder)
    return " ".join([*parts, *([] if note is None else [f"{note[0].upper()}{note[1:]}."])])


def ladder_chart(ladder: Ladder) -> Spec | None:
    """Step time against the rate of a node's link, both logarithmic; None without a curve.

    The unshaped rung is the last, at the rate that plain TCP streams carried.
    """
    found = ladder.found
    if found is None:
        return None
    rungs, curve, predicted = _rungs(found), _curve(found), _predicted(ladder)
    x, y = _rate_axis(found), _time_axis([*rungs, *curve, *predicted, *_floor(found)])
    told = tips(rate="rate", time="words", interval="interval", by_the_curve="curve")
    layers: list[Spec] = [
        *_marked(found, x, y),
        {
            "data": rows_of(curve),
            "mark": {"type": "line", "strokeWidth": 2, "color": PALETTE[0]},
            "encoding": {"x": x, "y": y},
        },
        {
            "mark": {"type": "rule", "strokeWidth": 2, "color": INK},
            "encoding": {"x": x, "y": y | {"field": "low"}, "y2": {"field": "high"}},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 50, "color": INK, "opacity": 1},
            "encoding": {"x": x, "y": y, "tooltip": told},
        },
    ]
    if predicted:
        cross: Spec = {"type": "point", "shape": "cross", "size": 60, "color": COST_COLOUR}
        encoding: Spec = {"x": x, "y": y, "tooltip": tips(rate="rate", time="words")}
        layers.append({"data": rows_of(predicted), "mark": cross, "encoding": encoding})
    return frame(layers, height=HEIGHT) | {"data": rows_of(rungs)}


def _rungs(found: Sensitivity) -> list[Spec]:
    rows: list[Spec] = []
    for rung in found.rungs:
        step = rung.step_s
        low = step.value if step.low is None else step.low
        row: Spec = {
            "x": rung.rate_gbps,
            "y": step.value,
            "low": max(low, LEAST_SHARE * step.value),
            "high": step.value if step.high is None else step.high,
            "rate": rung_name(rung),
            "words": show_time(step.value),
            "interval": interval(STEP, step),
            "curve": show_time(rung.fitted_s),
        }
        rows.append(row)
    return rows


def _curve(found: Sensitivity) -> list[Spec]:
    """From the slowest rung to the fastest, its corner among the points."""
    slowest, fastest = found.rungs[0], found.rungs[-1]
    payload_share = slowest.payload_gbps / slowest.rate_gbps
    ratio = fastest.rate_gbps / slowest.rate_gbps
    last = CURVE_POINTS - 1
    rates = [slowest.rate_gbps * ratio ** (index / last) for index in range(last)]
    rates.append(fastest.rate_gbps)
    if found.curve.knee_s_per_gbyte > 0:
        knee = 8 / found.curve.knee_s_per_gbyte / payload_share
        rates += [knee] if slowest.rate_gbps < knee < fastest.rate_gbps else []
    return [
        {"x": rate, "y": found.curve.step_s(8 / (rate * payload_share))} for rate in sorted(rates)
    ]


def _predicted(ladder: Ladder) -> list[Spec]:
    return [
        {
            "x": each.rate_gbps,
            "y": each.step_s.value,
            "rate": show_rate(each.rate_gbps),
            "words": f"predicted {show_time(each.step_s.value)}",
        }
        for each in ladder.predicted
    ]


def _marked(found: Sensitivity, x: Spec, y: Spec) -> list[Spec]:
    """The floor and the knee, each a dashed line with its name, where they are stated."""
    layers: list[Spec] = []
    for row in _floor(found):
        layers += _named_line("floor", row, {"y": y}, "x")
    if found.knee_gbps.estimate is not None:
        layers += _named_line("knee", {"x": found.knee_gbps.estimate.value}, {"x": x}, "y")
    return layers


def _floor(found: Sensitivity) -> list[Spec]:
    """Where it is stated, and is not the curve itself."""
    floor = found.base_s.estimate
    return [] if floor is None or found.curve.form is Form.FLAT else [{"y": floor.value}]


def _named_line(name: str, row: Spec, place: Spec, other: str) -> list[Spec]:
    """Its name stands where the other axis begins, on the upper side of the line."""
    rule: Spec = {"type": "rule", "strokeDash": [4, 3], "color": FAINT}
    word: Spec = {"type": "text", "text": name, "align": "left", "dx": 4, "color": FAINT}
    upper: Spec = {"dy": -6} if other == "x" else {"dy": 8}
    return [
        {"data": rows_of([row]), "mark": rule, "encoding": place},
        {
            "data": rows_of([row]),
            "mark": word | upper,
            "encoding": place | {other: {"value": 0}},
        },
    ]


def _rate_axis(found: Sensitivity) -> Spec:
    """A tick at each rung, with its name."""
    slowest, fastest = found.rungs[0], found.rungs[-1]
    named = {rung.rate_gbps: rung_name(rung) for rung in found.rungs if _has_room(rung, found)}
    axis = printed_axis(
        sorted(named),
        lambda rate: named[rate],
        title="what a network carries a node" if slowest.name else "rate of a node's link",
        labelOverlap="greedy",
        labelSeparation=6,
        grid=False,
    )
    domain = [slowest.rate_gbps / MARGIN, fastest.rate_gbps * MARGIN]
    return {
        "field": "x",
        "type": "quantitative",
        "scale": {"type": "log", "domain": domain, "nice": False},
        "axis": axis,
    }


def _has_room(rung: FittedRung, found: Sensitivity) -> bool:
    """Does its name stand clear of the word `unshaped`?"""
    slowest, fastest = found.rungs[0], found.rungs[-1]
    if rung is fastest or not fastest.is_unshaped:
        return True
    ratio = fastest.rate_gbps / slowest.rate_gbps
    return rung.rate_gbps <= fastest.rate_gbps / math.pow(ratio, LABEL_SHARE)


def _time_axis(rows: list[Spec]) -> Spec:
    times = [float(str(row[key])) for row in rows for key in ("y", "low", "high") if key in row]
    ticks = log_ticks(min(times), max(times))
    axis = printed_axis(
        ticks, show_time, title="time of a step", labelOverlap="greedy", labelSeparation=8
    )
    return {
        "field": "y",
        "type": "quantitative",
        "scale": {"type": "log", "domain": [ticks[0], ticks[-1]], "nice": False},
        "axis": axis,
    }
