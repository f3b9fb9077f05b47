"""How do predictions look? Throughput against nodes, and step time against bandwidth."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from broadgauge.predict.answering.answers import Answer
from broadgauge.predict.answering.knee import BandwidthCurve
from broadgauge.report.charts.parts import (
    FAINT,
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
from broadgauge.report.predict.network_marks import NetworkMark, PlacedName, placed_names
from broadgauge.report.predict.words import label_words, show_interval, tokens_words
from broadgauge.specs.units import show_count, show_rate, show_time

MOST_LINES = len(PALETTE)
PAPER = "#fff"
PLOT_HEIGHT = 240
ROW_HEIGHT = 15
"""Pixels, of a row of names."""


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


def step_by_bandwidth(
    curves: Sequence[BandwidthCurve],
    names: Sequence[str],
    marks: Sequence[Sequence[NetworkMark]],
) -> Spec | None:
    """Step time over the rate that a node carries, with the knees and the networks asked for."""
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
    of_networks = [mark for each in marks for mark in each]
    times = [*(float(str(row["value"])) for row in rows), *(mark.step_s for mark in of_networks)]
    rates = [*(float(str(row["rate"])) for row in rows), *(mark.rate_gbps for mark in of_networks)]
    x = _log("rate", rates, show_rate, "carried by a node, one direction")
    ticks = log_ticks(min(rates), max(rates))
    placed = placed_names(of_networks, ticks[0], ticks[-1])
    band = _Band(num_rows=1 + max((each.row for each in placed), default=-1), times_s=times)
    y = _log("value", times, show_time, "time of a step")
    y |= {"scale": {"type": "log", "domain": [band.bottom, band.top], "nice": False}}
    colour = _colours("setting", names)
    layers: list[Spec] = [
        *_name_lines(placed, band, x, y),
        {
            "mark": {"type": "line", "strokeWidth": 2},
            "encoding": {
                "x": x,
                "y": y,
                "color": colour,
                "tooltip": tips(step="words", carried="carried", of="setting"),
            },
        },
        _knees(curves, names, band, x, y),
        *_points(names, marks, x, y, colour),
        *_names_above(placed, band, x, y),
    ]
    return frame(layers, height=band.height) | {"data": rows_of(rows)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Band:
    """Rows of names above the curves, in a plot that is higher by as much."""

    num_rows: int
    times_s: Sequence[float]
    """Seconds, of all that lies below."""

    @property
    def height(self) -> int:
        """Of the plot, in pixels."""
        return PLOT_HEIGHT + ROW_HEIGHT * self.num_rows

    @property
    def bottom(self) -> float:
        return log_ticks(min(self.times_s), max(self.times_s))[0]

    @property
    def top(self) -> float:
        return self._above(ROW_HEIGHT * self.num_rows)

    @property
    def edge(self) -> float:
        """Between the names and the curves."""
        return self._above(0)

    def middle(self, row: int) -> float:
        return self._above(ROW_HEIGHT * (self.num_rows - row - 0.5))

    def _above(self, pixels: float) -> float:
        """So far above the curves on the logarithmic axis."""
        last = log_ticks(min(self.times_s), max(self.times_s))[-1]
        return float(last * (last / self.bottom) ** (pixels / PLOT_HEIGHT))


def _knees(
    curves: Sequence[BandwidthCurve], names: Sequence[str], band: _Band, x: Spec, y: Spec
) -> Spec:
    rows: list[Spec] = [
        {
            "setting": name,
            "rate": curve.knee_gbps,
            "words": show_rate(curve.knee_gbps),
            "value": band.edge,
            "low": band.bottom,
        }
        for name, curve in zip(names, curves, strict=True)
        if curve.knee_gbps is not None
    ]
    return {
        "data": rows_of(rows),
        "mark": {"type": "rule", "strokeDash": [4, 3], "color": INK},
        "encoding": {
            "x": x,
            "y": y,
            "y2": {"field": "low"},
            "tooltip": tips(knee="words", of="setting"),
        },
    }


def _points(
    names: Sequence[str],
    marks: Sequence[Sequence[NetworkMark]],
    x: Spec,
    y: Spec,
    colour: Spec,
) -> list[Spec]:
    """Each network on the curve of its training."""
    rows: list[Spec] = [
        {
            "setting": name,
            "rate": mark.rate_gbps,
            "value": mark.step_s,
            "network": mark.name,
            "words": show_time(mark.step_s),
            "carried": show_rate(mark.rate_gbps),
        }
        for name, each in zip(names, marks, strict=True)
        for mark in each
    ]
    tip = tips(network="network", step="words", carried="carried", of="setting")
    point: Spec = {"type": "point", "filled": True, "size": 55, "opacity": 1, "stroke": PAPER}
    encoding: Spec = {"x": x, "y": y, "color": colour, "tooltip": tip}
    return [{"data": rows_of(rows), "mark": point, "encoding": encoding}] if rows else []


def _name_lines(placed: Sequence[PlacedName], band: _Band, x: Spec, y: Spec) -> list[Spec]:
    """From each name down through the curves."""
    rows: list[Spec] = [
        {"rate": each.rate_gbps, "value": band.middle(each.row), "low": band.bottom}
        for each in placed
    ]
    mark: Spec = {"type": "rule", "color": FAINT, "opacity": 0.5}
    encoding: Spec = {"x": x, "y": y, "y2": {"field": "low"}}
    return [{"data": rows_of(rows), "mark": mark, "encoding": encoding}] if rows else []


def _names_above(placed: Sequence[PlacedName], band: _Band, x: Spec, y: Spec) -> list[Spec]:
    """Each over a strip of paper, which cuts the lines of others behind it."""
    layers: list[Spec] = []
    for is_left, align, dx in ((False, "left", 4), (True, "right", -4)):
        rows: list[Spec] = [
            {"rate": each.rate_gbps, "value": band.middle(each.row), "network": each.name}
            for each in placed
            if each.is_left == is_left
        ]
        text: Spec = {"type": "text", "align": align, "dx": dx, "fontSize": 11}
        encoding: Spec = {"x": x, "y": y, "text": {"field": "network", "type": "nominal"}}
        for style in ({"stroke": PAPER, "strokeWidth": 4, "color": PAPER}, {"color": INK}):
            mark: Spec = text | style
            layers += [{"data": rows_of(rows), "mark": mark, "encoding": encoding}] if rows else []
    return layers


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
