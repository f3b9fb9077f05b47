"""What did the hosts do meanwhile? A Vega-Lite specification."""

from collections.abc import Sequence

from broadgauge.report.charts.parts import (
    BAR_STEP,
    Spec,
    bars_axis,
    frame,
    printed_axis,
    rows_of,
    tips,
)
from broadgauge.report.charts.points import HostShare
from broadgauge.specs.units import show_ratio

HOST_COLOURS = {"user": "#7FA7C9", "system": "#D55E00", "softirq": "#8C2D04"}


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
            "y": bars_axis(rows),
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
