"""What does each network give a training? Vega-Lite specifications by small functions."""

from collections.abc import Sequence

from broadgauge.report.charts.parts import (
    BAR_STEP,
    COMPUTE_COLOUR,
    COST_COLOUR,
    INK,
    Spec,
    bar,
    bar_label,
    bars_axis,
    bars_chart,
    case_colours,
    error_bar,
    frame,
    linear_ticks,
    log_ticks,
    network_colours,
    printed_axis,
    rows_of,
    tips,
)
from broadgauge.report.charts.points import Box, LossCurve
from broadgauge.report.words.quantities import interval, show
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.specs.units import show_count, show_time

COST_METRICS = {"step_without_communication_s", "network_cost_s", "step_time_s"}


def throughput_chart(run: RunSummary, cases: Sequence[CaseSummary]) -> Spec | None:
    """How many tokens a second does each network give, all ranks together?"""
    tooltip = tips(case="case", tokens_per_second="words", interval="interval", launches="launches")
    return bars_chart(run, cases, "tokens_per_s", (show_count, "tokens/s, all ranks"), tooltip)


def cost_chart(run: RunSummary, cases: Sequence[CaseSummary]) -> Spec | None:
    """How much of a step is there without communication, and how much does the network add?"""
    measured = [s for s in cases if s.estimates.keys() >= COST_METRICS]
    if not measured:
        return None
    parts = [part for summary in measured for part in _cost_parts(run, summary)]
    totals = [bar(run, summary, "step_time_s") for summary in measured]
    ticks = linear_ticks(max(float(str(row["high"])) for row in totals))
    x: Spec = {
        "field": "start",
        "type": "quantitative",
        "scale": {"domain": [0, ticks[-1]], "nice": False},
        "axis": printed_axis(ticks, show_time, title="time of a step"),
    }
    y = bars_axis(parts)
    scale = {
        "domain": ["communication off", "network cost"],
        "range": [COMPUTE_COLOUR, COST_COLOUR],
    }
    bars: Spec = {
        "data": rows_of(parts),
        "mark": {"type": "bar", "height": {"band": 0.62}},
        "encoding": {
            "x": x,
            "x2": {"field": "end"},
            "y": y,
            "color": {"field": "part", "type": "nominal", "scale": scale},
            "tooltip": tips(case="case", part="part", time="words", interval="interval"),
        },
    }
    return frame([bars, {"data": rows_of(totals), **error_bar(x, y)}], height={"step": BAR_STEP})


def _cost_parts(run: RunSummary, summary: CaseSummary) -> list[Spec]:
    """The two parts of one bar."""
    off = summary.estimates["step_without_communication_s"]
    cost = summary.estimates["network_cost_s"]
    return [
        {
            "case": bar_label(summary, run),
            "part": part,
            "start": start,
            "end": start + max(0.0, estimate.value),
            "words": show(name, estimate.value),
            "interval": interval(name, estimate),
        }
        for part, estimate, name, start in (
            ("communication off", off, "step_without_communication_s", 0.0),
            ("network cost", cost, "network_cost_s", off.value),
        )
    ]


def step_chart(run: RunSummary, boxes: Sequence[Box], title: str = "time of a step") -> Spec | None:
    """How are the times of single steps spread? Box: middle half; line: 5th to 95th percentile."""
    if not boxes:
        return None
    rows = [_step_row(box) for box in boxes]
    dots: list[Spec] = [
        {"case": box.label, "network": box.network, "time": time}
        for box in boxes
        for time in box.some
    ]
    x, y = _step_axis([time for box in boxes for time in box.some], title), bars_axis(rows)
    colour = network_colours(run)
    tooltip = tips(
        case="case", median="words", middle_half="middle", most_steps="most", steps="steps"
    )
    half = _between(x, y, ("p25", "p75"), {"type": "bar", "height": {"band": 0.42}, "opacity": 0.8})
    layers: list[Spec] = [
        {
            "data": rows_of(dots),
            "mark": {"type": "tick", "thickness": 1, "opacity": 0.35, "height": {"band": 0.8}},
            "encoding": {"x": x | {"field": "time"}, "y": y, "color": colour},
        },
        _between(x, y, ("p05", "p95"), {"type": "rule", "strokeWidth": 1.5, "color": INK}),
        half | {"encoding": _encoding(half) | {"color": colour, "tooltip": tooltip}},
        {
            "mark": {"type": "tick", "thickness": 2.5, "color": INK, "height": {"band": 0.5}},
            "encoding": {"x": x | {"field": "median"}, "y": y, "tooltip": tooltip},
        },
    ]
    return frame(layers, height={"step": BAR_STEP + 4}) | {"data": rows_of(rows)}


def _encoding(layer: Spec) -> Spec:
    encoding = layer["encoding"]
    assert isinstance(encoding, dict)
    return encoding


def _step_row(box: Box) -> Spec:
    return {
        "case": box.label,
        "network": box.network,
        "p05": box.p05,
        "p25": box.p25,
        "median": box.median,
        "p75": box.p75,
        "p95": box.p95,
        "words": show_time(box.median),
        "middle": f"{show_time(box.p25)} to {show_time(box.p75)}",
        "most": f"{show_time(box.p05)} to {show_time(box.p95)}",
        "steps": show_count(box.samples),
    }


def _step_axis(times: Sequence[float], title: str) -> Spec:
    ticks = log_ticks(min(times), max(times))
    return {
        "type": "quantitative",
        "scale": {"type": "log", "domain": [ticks[0], ticks[-1]], "nice": False},
        "axis": printed_axis(
            ticks, show_time, title=title, labelOverlap="greedy", labelSeparation=8
        ),
    }


def _between(x: Spec, y: Spec, fields: tuple[str, str], mark: Spec) -> Spec:
    return {
        "mark": mark,
        "encoding": {"x": x | {"field": fields[0]}, "x2": {"field": fields[1]}, "y": y},
    }


def loss_chart(run: RunSummary, curves: Sequence[LossCurve]) -> Spec | None:
    """How far does the training come in the same time on each network?"""
    rows: list[Spec] = [
        {
            "case": curve.label,
            "network": curve.network,
            "time": time,
            "loss": loss,
            "when": show_time(time),
            "words": show_count(loss, 4),
        }
        for curve in curves
        for time, loss in curve.points
    ]
    if not rows:
        return None
    ticks = linear_ticks(max(float(str(row["time"])) for row in rows))
    x: Spec = {
        "field": "time",
        "type": "quantitative",
        "scale": {"domain": [0, ticks[-1]], "nice": False},
        "axis": printed_axis(ticks, show_time, title="time in measured steps"),
    }
    y: Spec = {
        "field": "loss",
        "type": "quantitative",
        "scale": {"zero": False},
        "axis": {"title": "loss", "tickCount": 5},
    }
    layer: Spec = {
        "mark": {"type": "line", "strokeWidth": 2},
        "encoding": {
            "x": x,
            "y": y,
            "color": case_colours(rows, run),
            "detail": {"field": "case", "type": "nominal"},
            "tooltip": tips(case="case", time="when", loss="words"),
        },
    }
    return frame([layer], height=240) | {"data": rows_of(rows)}
