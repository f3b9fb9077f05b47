"""What do all charts share? Colours by network, axes with printed ticks, and the frame."""

import json
import math
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence

from broadgauge.report.words.quantities import interval, show
from broadgauge.results.model import CaseSummary, RunSummary

Spec = dict[str, object]
"""A Vega-Lite specification (https://vega.github.io/vega-lite/docs/spec.html), as JSON."""

BAR_STEP = 30
LABEL_LINE_HEIGHT = 13
"""In pixels, as the step."""
"""Pixels from bar to bar."""
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B38600", "#3A9BD9", "#7A5195", "#5C6B2F")
"""Okabe & Ito's colours, told apart with colour blindness; yellow and sky blue darkened for white
paper."""
ONE_NODE_COLOUR = "#666666"
COMPUTE_COLOUR = "#9AA5B1"
COST_COLOUR = "#D55E00"
INK = "#1f2430"
FAINT = "#5b6472"
TICKS = 5
LABEL_WIDTH = 24
"""Characters of a bar's label on one line."""

_CONFIG: Spec = {
    "font": "sans-serif",
    "aria": False,
    "background": "transparent",
    "view": {"stroke": None},
    "axis": {
        "labelColor": INK,
        "titleColor": FAINT,
        "titleFontWeight": "normal",
        "labelFontSize": 11,
        "titleFontSize": 11,
        "gridColor": "#e3e6ea",
        "domainColor": "#9aa1ab",
        "tickColor": "#9aa1ab",
        "labelLimit": 150,
    },
    "legend": {
        "orient": "top",
        "title": None,
        "labelColor": INK,
        "labelFontSize": 11,
        "columns": 3,
        "symbolType": "square",
        "labelLimit": 260,
        "offset": 6,
    },
}


def frame(layers: Sequence[Spec], *, height: int | Spec) -> Spec:
    """Layers over one another, as wide as the place they get, with nothing read from outside."""
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": 510,
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "padding": {"left": 2, "right": 8, "top": 2, "bottom": 2},
        "config": _CONFIG,
        "layer": list(layers),
    }


def rows_of(values: Iterable[Spec]) -> Spec:
    """Inline data."""
    return {"values": list(values)}


def network_names(run: RunSummary) -> list[str]:
    """In the plan's order, one node first."""
    names = list(dict.fromkeys(summary.case.network_name for summary in run.cases))
    return sorted(names, key=lambda name: name != "one node")


def network_colours(run: RunSummary, shown: Iterable[object] | None = None) -> Spec:
    """Every chart gives a network the same colour; a legend names those `shown`, if any."""
    names = network_names(run)
    networks = [name for name in names if name != "one node"]
    colours = {name: PALETTE[index % len(PALETTE)] for index, name in enumerate(networks)}
    is_line = shown is not None
    kept = set(names if shown is None else shown)
    there = [name for name in names if name in kept]
    return {
        "field": "network",
        "type": "nominal",
        "scale": {
            "domain": there,
            "range": [colours.get(name, ONE_NODE_COLOUR) for name in there],
        },
        "legend": {"symbolType": "stroke", "symbolStrokeWidth": 3} if is_line else None,
    }


def case_colours(rows: Sequence[Spec], run: RunSummary) -> Spec:
    """As `network_colours`; by case where several of those shown are on one network."""
    cases = list(dict.fromkeys(str(row["case"]) for row in rows))
    if len(cases) == len({row["network"] for row in rows}):
        return network_colours(run, (row["network"] for row in rows))
    return {
        "field": "case",
        "type": "nominal",
        "scale": {
            "domain": cases,
            "range": [PALETTE[index % len(PALETTE)] for index in range(len(cases))],
        },
        "legend": {"symbolType": "stroke", "symbolStrokeWidth": 3, "columns": 2},
    }


def bar_label(summary: CaseSummary, run: RunSummary) -> str:
    """`pod-like 2x1`; with the workload's name where several would look alike."""
    label = f"{summary.case.network_name} {summary.case.shape}"
    has_steps = summary.case.workload.has_steps  # as all that share its chart
    bars = (s.case.workload for s in run.cases if s.case.workload.has_steps == has_steps)
    names = {summary.case.workload.name, *(workload.name for workload in bars)}
    return label if len(names) == 1 else f"{summary.case.workload.name} {label}"


def label_lines(labels: Sequence[str], width: int = LABEL_WIDTH) -> Iterator[list[str]]:
    """Each label on one line or two, of so many characters at most where it has spaces.

    What is longer loses its middle, where the labels stay apart by what is left; where they would
    read the same, they are left whole.
    """
    wrapped = [textwrap.wrap(label, width, break_long_words=False) for label in labels]
    cut = [[_cut(line, width) for line in _two(lines, width)] for lines in wrapped]
    for lines, short in zip(wrapped, cut, strict=True):
        yield short if cut.count(short) == 1 else lines


def _two(lines: list[str], width: int) -> list[str]:
    """The first, and all others as one that is cut."""
    return lines if len(lines) <= 2 else [lines[0], _cut(" ".join(lines[1:]), width)]


def _cut(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    half = (width - 1) // 2
    return f"{line[:half]}…{line[-half:]}"


def printed_axis(ticks: Sequence[float], printed: Callable[[float], str], **more: object) -> Spec:
    """An axis whose labels are printed here, as everywhere else, rather than by the runtime."""
    numbers = json.dumps([float(tick) for tick in ticks])
    labels = json.dumps([printed(tick) if tick else "0" for tick in ticks], ensure_ascii=False)
    return {
        "values": [float(tick) for tick in ticks],
        "labelExpr": f"{labels}[indexof({numbers}, datum.value)]",
        **more,
    }


def linear_ticks(largest: float) -> list[float]:
    """0 and up to five steps of 1, 2 or 5 times a power of ten, the last above the largest."""
    if largest <= 0:
        return [0.0, 1.0]
    rough = largest / TICKS
    magnitude = 10.0 ** math.floor(math.log10(rough))
    step = next(m * magnitude for m in (1, 2, 5, 10) if m * magnitude >= rough * 0.999)
    return [round(step * index, 12) for index in range(math.ceil(largest / step - 1e-9) + 1)]


def decade_ticks(low: float, high: float) -> list[float]:
    """Powers of ten that enclose the two."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return [10.0**power for power in range(first, max(last, first + 1) + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Round steps between powers of ten that enclose the two."""
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    ticks = [m * 10.0**power for power in powers for m in (1, 1.5, 2, 3, 5, 7)]
    first = max(index for index, tick in enumerate(ticks) if tick <= low)
    last = min(index for index, tick in enumerate(ticks) if tick >= high)
    return ticks[first : max(last, first + 1) + 1]


def tips(**fields: str) -> list[Spec]:
    """What a pointer resting on a mark shows: title → field holding printed text."""
    return [
        {"field": field, "type": "nominal", "title": title.replace("_", " ")}
        for title, field in fields.items()
    ]


def bar(run: RunSummary, summary: CaseSummary, metric: str) -> Spec:
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


def bars_axis(rows: Sequence[Spec]) -> Spec:
    """One bar a case, in the order given, long labels on two lines."""
    order = list(dict.fromkeys(str(row["case"]) for row in rows))
    names = json.dumps(order, ensure_ascii=False)
    lines = json.dumps([*label_lines(order)], ensure_ascii=False)
    axis: Spec = {
        "title": None,
        "ticks": False,
        "domain": False,
        "labelFontSize": 12,
        "labelLineHeight": LABEL_LINE_HEIGHT,
        "labelLimit": 220,
        "labelExpr": f"{lines}[indexof({names}, datum.value)]",
    }
    return {"field": "case", "type": "nominal", "sort": order, "axis": axis}


def bars_height(rows: Sequence[Spec]) -> Spec:
    """Of bars, where no label reaches into the next one's."""
    labels = list(dict.fromkeys(str(row["case"]) for row in rows))
    most_lines = max(map(len, label_lines(labels)), default=1)
    return {"step": max(BAR_STEP, LABEL_LINE_HEIGHT * most_lines + 4)}


def bars_chart(
    run: RunSummary,
    cases: Sequence[CaseSummary],
    metric: str,
    axis: tuple[Callable[[float], str], str],
    tooltip: Sequence[Spec],
) -> Spec | None:
    """A metric of each case with its interval; None where none has it. `axis`: how its ticks are
    printed, and its title."""
    rows = [bar(run, summary, metric) for summary in cases if summary.value(metric)]
    if not rows:
        return None
    ticks = linear_ticks(max(float(str(row["high"])) for row in rows))
    x: Spec = {
        "field": "value",
        "type": "quantitative",
        "scale": {"domain": [0, ticks[-1]], "nice": False},
        "axis": printed_axis(ticks, axis[0], title=axis[1]),
    }
    y = bars_axis(rows)
    bars: Spec = {
        "mark": {"type": "bar", "height": {"band": 0.62}},
        "encoding": {"x": x, "y": y, "color": network_colours(run), "tooltip": tooltip},
    }
    return frame([bars, error_bar(x, y)], height=bars_height(rows)) | {"data": rows_of(rows)}


def error_bar(x: Spec, y: Spec) -> Spec:
    """The 95 % interval, over a bar."""
    return {
        "mark": {"type": "rule", "strokeWidth": 2, "color": INK},
        "encoding": {"x": x | {"field": "low"}, "x2": {"field": "high"}, "y": y},
    }
