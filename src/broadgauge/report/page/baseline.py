"""How does the experiment do against the run that was repeated beside it?"""

from collections.abc import Iterable, Sequence

from broadgauge.analysis.model import Analysis, JudgedRatio
from broadgauge.report.page.markup import Html, join, table, tag, with_sub_lines
from broadgauge.report.words.gate import GATE_HEAD, gate_cells, gate_sentences
from broadgauge.report.words.quantities import interval, show, spread, title_of
from broadgauge.results.comparing.gate import Gate
from broadgauge.results.model import RunSummary
from broadgauge.specs.units import show_ratio


def baseline(run: RunSummary, analysis: Analysis) -> Html:
    """The two arms side by side, with the gate's outcome where the run has a limit."""
    if run.plan.baseline is None:
        return Html()
    return join(
        tag("h2", "Against the baseline"),
        tag(
            "p",
            f"{run.plan.baseline.run} was repeated beside this experiment, launch by launch in the "
            "same blocks, so that what changed on the machine meanwhile cancels. Figures are means "
            "over launches; the ratio is geometric (mean log-ratio of pairs, 95 % interval).",
            class_="how",
        ),
        _compared(analysis.arms) if analysis.gate is None else _gated(analysis.gate),
    )


def _gated(found: Gate) -> Html:
    outcome = f"Fail above {show_ratio(found.limit_ratio)}: {found.outcome.value} ({found.reason})."
    return join(
        tag("p", tag("strong", outcome)),
        _table(GATE_HEAD, [gate_cells(row) for row in found.rows]) if found.rows else "",
        tag("ul", [tag("li", said) for said in gate_sentences(found)]),
    )


def _compared(rows: Sequence[JudgedRatio]) -> Html:
    if not rows:
        return tag("p", "No case succeeded on both sides.")
    head = ("case", "metric", "baseline (mean)", "candidate (mean)", "ratio (geometric)", "finding")
    return _table(head, [_cells(row) for row in rows])


def _cells(row: JudgedRatio) -> tuple[str, ...]:
    """B is the candidate."""
    labels, sides = (row.b, title_of(row.metric)), (row.a_figure, row.b_figure)
    figures = (f"{show(row.metric, e.value)}\n{spread(row.metric, e)}" for e in sides)
    ratio = row.ratio
    if ratio is None or row.verdict is None:
        return (*labels, *figures, "–", "; ".join(row.notes))
    shown = f"{show('speedup_ratio', ratio.value)}\n{interval('speedup_ratio', ratio)}"
    return (*labels, *figures, shown, "; ".join((row.verdict.value, *row.notes)))


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Html:
    return table(head, [map(with_sub_lines, row) for row in rows], class_="text cards-below")
