"""How do predictions look? Throughput against nodes, and step time against bandwidth."""

from collections.abc import Callable, Sequence

from broadgauge.predict.answering.answers import Answer
from broadgauge.predict.answering.knee import BandwidthCurve
from broadgauge.report.chart_parts import (
    INK,
    PALETTE,
    Spec,
    frame,
    linear_ticks,
    log_ticks,
    printed_axis,
    rows_of,
    tips,
)
from broadgauge.report.predict_words import label_words, show_interval, tokens_words
from broadgauge.specs.units import show_count, show_rate, show_time

MOST_LINES = len(PALETTE)


def throughput_by_nodes(answers: Sequence[Answer]) -> Spec | None:
    """Tokens/s of all GPUs over the number of nodes, a line for each setting; None: one size."""
    sizes = sorted({answer.prediction.case.nodes for answer in answers})
    if len(sizes) < 2:
        return None
    rows = [row for answer in answers for row in _throughput_rows(answer, answers)]
    names = list(dict.fromkeys(str(row["setting"]) for row in rows))[:MOST_LINES]
    rows = [row for row in rows if row["setting"] in names]
    ticks = linear_ticks(max(float(str(row["high"])) for row in rows))
    x: Spec = {
        "field": "nodes",
        "type": "quantitative",
        "scale": {"type": "log", "base": 2, "domain": [sizes[0], sizes[-1]], "nice": False},
        "axis": printed_axis([float(size) for size in sizes], _plain, title="nodes"),
    }
    y: Spec = {
        "field": "value",
        "type": "quantitative",
        "scale": {"domain": [0, ticks[-1]], "nice": False},
        "axis": printed_axis(ticks, show_count, title="tokens/s, all GPUs"),
    }
    colour = _colours("setting", names)
    tip = tips(case="case", tokens_per_second="words", step="step", interval="interval")
    lines: list[Spec] = [
        {
            "mark": {"type": "area", "opacity": 0.15},
            "encoding": {
                "x": x,
                "y": y | {"field": "low"},
                "y2": {"field": "high"},
                "color": colour,
            },
        },
        {
            "mark": {"type": "line", "strokeWidth": 2, "point": True},
            "encoding": {"x": x, "y": y, "color": colour, "tooltip": tip},
        },
    ]
    return frame(lines, height=240) | {"data": rows_of(rows)}


def _throughput_rows(answer: Answer, answers: Sequence[Answer]) -> list[Spec]:
    """One point; one node alone begins the line of every network."""
    prediction = answer.prediction
    nodes = prediction.case.nodes
    label = {key: value for key, value in answer.label.items() if key != "nodes"}
    settings = [", ".join(label.values())]
    if nodes == 1 and "network" in label:
        rest = {key: value for key, value in label.items() if key != "network"}
        settings = [
            ", ".join({**rest, "network": name}.values())
            for name in dict.fromkeys(
                other.label["network"] for other in answers if other.prediction.case.nodes > 1
            )
        ]
    step = prediction.step_time_s
    tokens = prediction.tokens_per_s
    return [
        {
            "setting": setting or "all",
            "case": label_words(answer),
            "nodes": nodes,
            "value": tokens,
            "low": tokens * step.value / step.high,
            "high": tokens * step.value / step.low,
            "words": tokens_words(answer),
            "step": show_time(step.value),
            "interval": show_interval(step),
        }
        for setting in settings
    ]


def step_by_bandwidth(curves: Sequence[BandwidthCurve], names: Sequence[str]) -> Spec | None:
    """Step time over the rate that a node carries, with the knees."""
    if not curves:
        return None
    rows: list[Spec] = [
        {
            "setting": name,
            "rate": rate,
            "value": time_s,
            "words": show_time(time_s),
            "carried": show_rate(rate),
        }
        for name, curve in zip(names, curves, strict=True)
        for rate, time_s in zip(curve.rates_gbps, curve.step_times_s, strict=True)
    ]
    knees: list[Spec] = [
        {"setting": name, "rate": curve.knee_gbps, "words": show_rate(curve.knee_gbps)}
        for name, curve in zip(names, curves, strict=True)
        if curve.knee_gbps is not None
    ]
    times = [float(str(row["value"])) for row in rows]
    rates = [float(str(row["rate"])) for row in rows]
    x = _log("rate", rates, show_rate, "carried by a node, one direction")
    y = _log("value", times, show_time, "time of a step")
    colour = _colours("setting", names)
    layers: list[Spec] = [
        {
            "mark": {"type": "line", "strokeWidth": 2},
            "encoding": {
                "x": x,
                "y": y,
                "color": colour,
                "tooltip": tips(step="words", carried="carried", of="setting"),
            },
        },
        {
            "data": rows_of(knees),
            "mark": {"type": "rule", "strokeDash": [4, 3], "color": INK},
            "encoding": {"x": x, "tooltip": tips(knee="words", of="setting")},
        },
    ]
    return frame(layers, height=240) | {"data": rows_of(rows)}


def _log(field: str, values: Sequence[float], printed: Callable[[float], str], title: str) -> Spec:
    ticks = log_ticks(min(values), max(values))
    axis = printed_axis(ticks, printed, title=title, labelOverlap="greedy", labelSeparation=8)
    return {
        "field": field,
        "type": "quantitative",
        "scale": {"type": "log", "domain": [ticks[0], ticks[-1]], "nice": False},
        "axis": axis,
    }


def _colours(field: str, names: Sequence[str]) -> Spec:
    scale = {
        "domain": list(names),
        "range": [PALETTE[index % len(PALETTE)] for index in range(len(names))],
    }
    return {
        "field": field,
        "type": "nominal",
        "scale": scale,
        "legend": {
            "symbolType": "stroke",
            "symbolStrokeWidth": 3,
            "symbolOpacity": 1,
            "columns": 1 if max(map(len, names)) > 20 else 3,
            "labelLimit": 400,
        }
        if len(names) > 1
        else None,
    }


def _plain(value: float) -> str:
    return f"{value:g}"
