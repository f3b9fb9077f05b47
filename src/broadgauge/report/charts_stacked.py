"""How does a whole divide into its parts? Stacked bars, as a Vega-Lite specification."""

from collections.abc import Mapping, Sequence

from broadgauge.report.chart_parts import (
    BAR_STEP,
    Spec,
    bars_axis,
    frame,
    linear_ticks,
    printed_axis,
    rows_of,
    tips,
)
from broadgauge.specs.units import show_ratio, show_time


def stacked_rows(
    label: str, parts_s: Mapping[str, float | None], whole_s: float, **more: Mapping[str, str]
) -> list[Spec]:
    """The pieces of one bar, in this order; what is 0 or not known is left out.

    `parts_s`: by its words. `more`: further fields of each piece, by its words.
    """
    rows: list[Spec] = []
    start = 0.0
    for words, time_s in parts_s.items():
        if not time_s:
            continue
        rows.append(
            {
                "case": label,
                "part": words,
                "start": start,
                "end": start + time_s,
                "words": show_time(time_s),
                "share": show_ratio(time_s / whole_s, 2),
                **{name: told[words] for name, told in more.items()},
            }
        )
        start += time_s
    return rows


def stacked_chart(
    rows: list[Spec],
    colours: Mapping[str, str],
    wholes_s: Sequence[float],
    *,
    title: str,
    **more_tips: str,
) -> Spec | None:
    """`colours`: by a part's words, in the order of the legend. None: there are no pieces."""
    if not rows:
        return None
    ticks = linear_ticks(max(wholes_s))
    shown = [words for words in colours if any(row["part"] == words for row in rows)]
    colour: Spec = {
        "field": "part",
        "type": "nominal",
        "scale": {"domain": shown, "range": [colours[words] for words in shown]},
    }
    x: Spec = {
        "field": "start",
        "type": "quantitative",
        "scale": {"domain": [0, ticks[-1]], "nice": False},
        "axis": printed_axis(ticks, show_time, title=title),
    }
    bars: Spec = {
        "mark": {"type": "bar", "height": {"band": 0.62}},
        "encoding": {
            "x": x,
            "x2": {"field": "end"},
            "y": bars_axis(rows),
            "color": colour,
            "tooltip": tips(case="case", part="part", time="words", **more_tips),
        },
    }
    return frame([bars], height={"step": BAR_STEP}) | {"data": rows_of(rows)}
