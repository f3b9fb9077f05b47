"""How long does training wait on each storage? Bars side by side, as Vega-Lite specifications."""

from collections.abc import Callable, Mapping, Sequence

from broadgauge.report.chart_parts import (
    BAR_STEP,
    INK,
    PALETTE,
    Spec,
    bars_axis,
    frame,
    linear_ticks,
    printed_axis,
    rows_of,
    tips,
)
from broadgauge.report.quantities import interval, show
from broadgauge.specs.estimate import Estimate

BAR_HEIGHT = 17
COLOURS = (PALETTE[0], PALETTE[1], PALETTE[2], PALETTE[3])


BarFigures = Sequence[tuple[str, Mapping[str, Estimate | None]]]
"""Of each storage by its label, what each bar's name stands for."""


def storage_bars(
    figures: BarFigures,
    *,
    name: str,
    title: str,
    printed: Callable[[float], str],
    notes: Mapping[str, str],
) -> Spec | None:
    """One group a storage, one bar a figure. `name`: a metric of the figures' unit. `notes`: by
    storage what its pointer shows. None: nothing was measured."""
    rows = [
        _row(label, what, estimate, name, notes)
        for label, estimates in figures
        for what, estimate in estimates.items()
        if estimate is not None
    ]
    if not rows:
        return None
    kinds = list(dict.fromkeys(str(row["what"]) for row in rows))
    ticks = linear_ticks(max(float(str(row["high"])) for row in rows))
    x: Spec = {
        "type": "quantitative",
        "scale": {"domain": [0, ticks[-1]], "nice": False},
        "axis": printed_axis(ticks, printed, title=title),
    }
    y: Spec = {
        "y": bars_axis(rows),
        "yOffset": {"field": "what", "type": "nominal", "sort": kinds},
    }
    colour: Spec = {
        "field": "what",
        "type": "nominal",
        "scale": {"domain": kinds, "range": [*COLOURS[: len(kinds)]]},
        "legend": {} if len(kinds) > 1 else None,
    }
    bars: Spec = {
        "mark": {"type": "bar"},
        "encoding": {
            "x": x | {"field": "value"},
            **y,
            "color": colour,
            "tooltip": tips(
                storage="case", figure="what", mean="words", interval="interval", note="note"
            ),
        },
    }
    spread: Spec = {
        "mark": {"type": "rule", "strokeWidth": 2, "color": INK},
        "encoding": {"x": x | {"field": "low"}, "x2": {"field": "high"}, **y},
    }
    height: Spec = {
        "step": BAR_STEP if len(kinds) == 1 else BAR_HEIGHT * len(kinds),
        "for": "position",
    }
    return frame([bars, spread], height=height) | {"data": rows_of(rows)}


def _row(label: str, what: str, estimate: Estimate, name: str, notes: Mapping[str, str]) -> Spec:
    return {
        "case": label,
        "what": what,
        "value": estimate.value,
        "low": estimate.value if estimate.low is None else estimate.low,
        "high": estimate.value if estimate.high is None else estimate.high,
        "words": show(name, estimate.value),
        "interval": interval(name, estimate),
        "note": notes.get(label, ""),
    }
