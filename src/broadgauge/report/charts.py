"""Which pictures does a report show? Small functions from a run to a Vega-Lite specification."""

from collections.abc import Sequence

from broadgauge.report.chart_parts import (
    COMPUTE_COLOUR,
    COST_COLOUR,
    INK,
    Spec,
    bar_label,
    decade_ticks,
    frame,
    linear_ticks,
    log_ticks,
    network_colours,
    printed_axis,
    rows_of,
    tips,
)
from broadgauge.report.points import Box, HostShare, LossCurve
from broadgauge.report.quantities import interval, show
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.units import (
    show_bandwidth,
    show_count,
    show_rate,
    show_ratio,
    show_size,
    show_time,
)

BAR_STEP = 30
HOST_COLOURS = {"user": "#7FA7C9", "system": "#D55E00", "softirq": "#8C2D04"}


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
            "data": rows_of(lines),
            "mark": {"type": "text", "align": "right", "baseline": "bottom", "dy": -2},
            "encoding": {
                "y": rule_y,
                "x": {"value": "width"},
                "text": {"field": "words"},
                "color": colour,
            },
        },
        {
            "data": rows_of(points),
            "mark": {"type": "rule", "strokeWidth": 1},
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


def _ends(estimate: Estimate) -> Spec:
    """Ends of the interval; the value itself where there is none. Logs need them above 0."""
    low = estimate.value if estimate.low is None else estimate.low
    high = estimate.value if estimate.high is None else estimate.high
    return {"low": low if low > 0 else estimate.value / 2, "high": high}


def _line_rates(run: RunSummary) -> list[Spec]:
    rates = {
        s.case.network.name: s.case.network.rate_gbps
        for s in run.cases
        if s.case.network is not None and s.collectives
    }
    return [
        {"network": name, "busbw": rate / 8, "words": f"line rate {show_rate(rate)}"}
        for name, rate in rates.items()
        if rate is not None
    ]


def throughput_chart(run: RunSummary, cases: Sequence[CaseSummary]) -> Spec | None:
    """How many tokens a second does each network give, all ranks together?"""
    rows = [
        _bar(run, summary, "tokens_per_s") for summary in cases if summary.value("tokens_per_s")
    ]
    if not rows:
        return None
    ticks = linear_ticks(max(float(str(row["high"])) for row in rows))
    axis = printed_axis(ticks, show_count, title="tokens/s, all ranks")
    x: Spec = {
        "field": "value",
        "type": "quantitative",
        "scale": {"domain": [0, ticks[-1]], "nice": False},
        "axis": axis,
    }
    y = _bars_axis(rows)
    tooltip = tips(case="case", tokens_per_second="words", interval="interval", launches="launches")
    layers: list[Spec] = [
        {
            "mark": {"type": "bar", "height": {"band": 0.62}},
            "encoding": {
                "x": x,
                "y": y,
                "color": network_colours(run),
                "tooltip": tooltip,
            },
        },
        _error_bar(x, y),
    ]
    return frame(layers, height={"step": BAR_STEP}) | {"data": rows_of(rows)}


def _bar(run: RunSummary, summary: CaseSummary, metric: str) -> Spec:
    estimate = summary.estimates[metric]
    return {
        "case": bar_label(summary, run),
        "network": summary.case.network_name,
        "value": estimate.value,
        "low": estimate.value if estimate.low is None else estimate.low,
        "high": estimate.value if estimate.high is None else estimate.high,
        "words": show(metric, estimate.value),
        "interval": interval(metric, estimate),
        "launches": str(estimate.launches),
    }


def _bars_axis(rows: Sequence[Spec]) -> Spec:
    """One bar a case, in the order given."""
    order = list(dict.fromkeys(row["case"] for row in rows))
    axis: Spec = {"title": None, "ticks": False, "domain": False, "labelFontSize": 12}
    return {"field": "case", "type": "nominal", "sort": order, "axis": axis}


def _error_bar(x: Spec, y: Spec) -> Spec:
    """The 95 % interval, over a bar."""
    return {
        "mark": {"type": "rule", "strokeWidth": 2, "color": INK},
        "encoding": {"x": x | {"field": "low"}, "x2": {"field": "high"}, "y": y},
    }


def cost_chart(run: RunSummary, cases: Sequence[CaseSummary]) -> Spec | None:
    """How much of a step is there without communication, and how much does the network add?"""
    parts: list[Spec] = []
    totals: list[Spec] = []
    for summary in cases:
        off = summary.estimates.get("step_without_communication_s")
        cost = summary.estimates.get("network_cost_s")
        if off is None or cost is None or "step_time_s" not in summary.estimates:
            continue
        totals.append(_bar(run, summary, "step_time_s"))
        label = bar_label(summary, run)
        for part, estimate, name, start in (
            ("communication off", off, "step_without_communication_s", 0.0),
            ("network cost", cost, "network_cost_s", off.value),
        ):
            parts.append(
                {
                    "case": label,
                    "part": part,
                    "start": start,
                    "end": start + max(0.0, estimate.value),
                    "words": show(name, estimate.value),
                    "interval": interval(name, estimate),
                }
            )
    if not parts:
        return None
    ticks = linear_ticks(max(float(str(row["high"])) for row in totals))
    x: Spec = {
        "field": "start",
        "type": "quantitative",
        "scale": {"domain": [0, ticks[-1]], "nice": False},
        "axis": printed_axis(ticks, show_time, title="time of a step"),
    }
    y = _bars_axis(parts)
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
    return frame([bars, {"data": rows_of(totals), **_error_bar(x, y)}], height={"step": BAR_STEP})


def step_chart(run: RunSummary, boxes: Sequence[Box]) -> Spec | None:
    """How are the times of single steps spread? Box: middle half; line: 5th to 95th percentile."""
    if not boxes:
        return None
    rows: list[Spec] = [
        {
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
        for box in boxes
    ]
    dots: list[Spec] = [
        {"case": box.label, "network": box.network, "time": time}
        for box in boxes
        for time in box.some
    ]
    times = [float(str(dot["time"])) for dot in dots]
    ticks = log_ticks(min(times), max(times))
    x: Spec = {
        "type": "quantitative",
        "scale": {"type": "log", "domain": [ticks[0], ticks[-1]], "nice": False},
        "axis": printed_axis(
            ticks, show_time, title="time of a step", labelOverlap="greedy", labelSeparation=8
        ),
    }
    y = _bars_axis(rows)
    colour = network_colours(run)
    tooltip = tips(
        case="case", median="words", middle_half="middle", most_steps="most", steps="steps"
    )
    layers: list[Spec] = [
        {
            "data": rows_of(dots),
            "mark": {"type": "tick", "thickness": 1, "opacity": 0.35, "height": {"band": 0.8}},
            "encoding": {"x": x | {"field": "time"}, "y": y, "color": colour},
        },
        _between(x, y, ("p05", "p95"), {"type": "rule", "strokeWidth": 1.5, "color": INK}),
        _between(x, y, ("p25", "p75"), {"type": "bar", "height": {"band": 0.42}, "opacity": 0.8}),
        {
            "mark": {"type": "tick", "thickness": 2.5, "color": INK, "height": {"band": 0.5}},
            "encoding": {"x": x | {"field": "median"}, "y": y, "tooltip": tooltip},
        },
    ]
    encoding = layers[2]["encoding"]
    assert isinstance(encoding, dict)
    encoding |= {"color": colour, "tooltip": tooltip}
    return frame(layers, height={"step": BAR_STEP + 4}) | {"data": rows_of(rows)}


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
            "color": network_colours(run, (row["network"] for row in rows)),
            "detail": {"field": "case", "type": "nominal"},
            "tooltip": tips(case="case", time="when", loss="words"),
        },
    }
    return frame([layer], height=240) | {"data": rows_of(rows)}


def host_chart(shares: Sequence[HostShare]) -> Spec | None:
    """What did the nodes' cores do? Shares of all their time, by kind."""
    if not shares:
        return None
    rows: list[Spec] = [
        {
            "case": share.label,
            "kind": kind,
            "order": index,
            "share": value,
            "words": show_ratio(value),
        }
        for share in shares
        for index, (kind, value) in enumerate(
            (("user", share.user), ("system", share.system), ("softirq", share.softirq))
        )
    ]
    ticks = [0.0, 0.25, 0.5, 0.75, 1.0]
    layer: Spec = {
        "mark": {"type": "bar", "height": {"band": 0.62}, "clip": True},
        "encoding": {
            "x": {
                "field": "share",
                "type": "quantitative",
                "stack": "zero",
                "scale": {"domain": [0, 1]},
                "axis": printed_axis(ticks, show_ratio, title="share of the nodes' cores"),
            },
            "y": _bars_axis(rows),
            "order": {"field": "order", "type": "quantitative"},
            "color": {
                "field": "kind",
                "type": "nominal",
                "scale": {"domain": [*HOST_COLOURS], "range": [*HOST_COLOURS.values()]},
            },
            "tooltip": tips(case="case", kind="kind", share="words"),
        },
    }
    return frame([layer], height={"step": BAR_STEP}) | {"data": rows_of(rows)}
