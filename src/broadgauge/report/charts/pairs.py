"""Which pair of nodes is slow? A heat map as a Vega-Lite specification."""

from broadgauge.advise.pairs.slow_pairs_over_launches import JudgedPairs
from broadgauge.report.charts.parts import INK, Spec, frame, rows_of, tips
from broadgauge.report.rows.matrix import pair_number
from broadgauge.report.words.quantities import interval
from broadgauge.results.pair_summaries import PairMatrix
from broadgauge.specs.units import show_bandwidth, show_ratio

CELL_STEP = 34
"""Pixels from row to row."""
MOST_WITH_NUMBERS = 12
"""Places whose figures fit the cells on a phone's page."""
SLOW_COLOUR = "#E07B39"
EVEN_COLOUR = "#E4EEF5"


def pair_chart(pairs: JudgedPairs) -> Spec:
    """How fast is each pair, against the median fast one? Slow pairs are dark and framed."""
    matrix = pairs.matrix
    rows: list[Spec] = [
        {
            "origin": cell.origin,
            "target": cell.target,
            "pair": f"{matrix.place} {cell.origin} → {matrix.place} {cell.target}",
            "part": cell.rate_gbyte_per_s.value / pairs.fast_gbyte_per_s,
            "is_slow": pair in pairs.slow,
            "number": pair_number(matrix, pair),
            "words": show_bandwidth(cell.rate_gbyte_per_s.value),
            "interval": interval("rate_gbyte_per_s", cell.rate_gbyte_per_s),
            "of_median": show_ratio(cell.over_median.value),
        }
        for pair, cell in matrix.cells.items()
    ]
    x = _axis("target", f"to {matrix.place}", matrix) | {"axis": _labels(f"to {matrix.place}")}
    y = _axis("origin", f"from {matrix.place}", matrix) | {"axis": _labels(f"from {matrix.place}")}
    slow = [row for row in rows if row["is_slow"]]
    layers: list[Spec] = [
        {"data": rows_of(rows), **_cells(x, y)},
        {
            "data": rows_of(slow),
            "mark": {"type": "rect", "fill": None, "stroke": INK, "strokeWidth": 2.5},
            "encoding": {"x": x, "y": y},
        },
    ]
    if len(matrix.places) <= MOST_WITH_NUMBERS:
        mark: Spec = {"type": "text", "fontSize": 11, "color": INK, "tooltip": None}
        text: Spec = {"x": x, "y": y, "text": {"field": "number"}}
        layers.append({"data": rows_of(rows), "mark": mark, "encoding": text})
    return frame(layers, height={"step": CELL_STEP})


def _axis(field: str, title: str, matrix: PairMatrix) -> Spec:
    return {
        "field": field,
        "type": "ordinal",
        "title": title,
        "scale": {"domain": [*matrix.places], "paddingInner": 0.04},
    }


def _labels(title: str) -> Spec:
    return {"title": title, "labelAngle": 0, "ticks": False, "domain": False, "labelFontSize": 12}


def _cells(x: Spec, y: Spec) -> Spec:
    """The slowest colour from half the median fast pair down."""
    scale: Spec = {"domain": [0.5, 1.0], "range": [SLOW_COLOUR, EVEN_COLOUR], "clamp": True}
    return {
        "mark": {"type": "rect"},
        "encoding": {
            "x": x,
            "y": y,
            "color": {
                "field": "part",
                "type": "quantitative",
                "scale": scale,
                "legend": None,
            },
            "tooltip": tips(
                pair="pair", rate="words", interval="interval", of_the_median="of_median"
            ),
        },
    }
