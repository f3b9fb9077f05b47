"""How is a case against its baseline told? The same for the terminal and the page."""

from broadgauge.report.words.quantities import show, smallest_change, spread, title_of
from broadgauge.results.comparing.gate import Gate, GateOutcome, GateRow
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.units import show_ratio

GATE_HEAD = (
    "case",
    "metric",
    "baseline (mean)",
    "candidate (mean)",
    "slowdown (geometric)",
    "outcome",
)


def gate_cells(row: GateRow) -> tuple[str, ...]:
    """One line of the table; for the page too."""
    return (
        row.label,
        title_of(row.metric),
        _figure(row.metric, row.baseline),
        _figure(row.metric, row.candidate),
        "–" if row.slowdown is None else _slowdown(row.slowdown),
        row.outcome.value,
    )


def _figure(metric: str, estimate: Estimate | None) -> str:
    if estimate is None:
        return "–"
    return f"{show(metric, estimate.value)}\n{spread(metric, estimate)}"


def _slowdown(slowdown: Estimate) -> str:
    if slowdown.low is None or slowdown.high is None:
        return f"{show_ratio(slowdown.value)}\nno interval"
    ends = f"{show_ratio(slowdown.low).removesuffix(' %')} to {show_ratio(slowdown.high)}"
    return f"{show_ratio(slowdown.value)}\n{ends}"


def gate_sentences(gate: Gate) -> list[str]:
    """One for each figure, and one for each case that was not gated."""
    return [*(f"{_name(row, gate)}: {row_sentence(row)}" for row in gate.rows), *gate.unmatched]


def _name(row: GateRow, gate: Gate) -> str:
    """The case, and which figure of it where any case has several."""
    return f"{row.label}, {title_of(row.metric)}" if gate.num_metrics > 1 else row.label


def row_sentence(row: GateRow) -> str:
    """`regression: 5.1 % slower, …`, and how little these launches could have shown."""
    notes = [row.note] if row.note else []
    if row.slowdown is None:
        return "; ".join((f"{row.outcome.value}: {row.reason}", *notes))
    word = "slower" if row.slowdown.value >= 0 else "faster"
    parts = [f"{row.outcome.value}: {show_ratio(abs(row.slowdown.value))} {word}, {row.reason}"]
    if row.smallest_ratio is not None:
        parts.append(
            f"{row.slowdown.launches} launches show a slowdown of "
            f"{smallest_change(row.smallest_ratio)} in 4 of 5 tries"
        )
    if row.outcome is GateOutcome.CANNOT_TELL and row.launches_needed is not None:
        parts.append(f"{row.launches_needed} would show the limit as often")
    return "; ".join((*parts, *notes))
