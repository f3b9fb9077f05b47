"""How are hypotheses and published figures worded? For the terminal and the page."""

from broadgauge.analysis.model import JudgedAnswer, JudgedHypothesis, JudgedPublished
from broadgauge.report.words.printable import printable
from broadgauge.report.words.quantities import interval, launches_words, show, title_of
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.hypothesis import Hypothesis

RATIO = "speedup_ratio"
ANSWER_HEAD = ("case", "against", "figure", "95 % interval", "answer")
PUBLISHED_HEAD = ("published", "metric", "theirs", "ours", "ours / theirs", "to the first")


def claim(hypothesis: Hypothesis) -> str:
    """`step time, a ratio, at most 1.1×`: what is measured, and its bound."""
    kinds = {"value": "", "ratio": ", a ratio", "efficiency": ", efficiency of a rank"}
    bounds = [
        f"{words} {show(_unit_name(hypothesis), bound)}"
        for words, bound in (("at least", hypothesis.at_least), ("at most", hypothesis.at_most))
        if bound is not None
    ]
    return f"{title_of(hypothesis.metric)}{kinds[hypothesis.quantity]}, {' and '.join(bounds)}"


def _unit_name(hypothesis: Hypothesis) -> str:
    """The metric's name, or one that is printed as `1.1×` or `90 %`."""
    names = {"ratio": RATIO, "efficiency": "efficiency_ratio", "value": hypothesis.metric}
    return names[hypothesis.quantity]


def answer_cells(result: JudgedHypothesis, answer: JudgedAnswer) -> tuple[str, ...]:
    """One case's part, as ANSWER_HEAD says."""
    name = _unit_name(result.hypothesis)
    estimate = answer.estimate
    why = f": {printable(answer.reason)}" if answer.reason else ""
    return (
        answer.case,
        "–" if answer.against is None else answer.against,
        "–" if estimate is None else show(name, estimate.value),
        "–" if estimate is None else interval(name, estimate),
        f"{answer.verdict.value}{why}",
    )


def published_cells(row: JudgedPublished) -> tuple[str, ...]:
    """One published figure beside ours, as PUBLISHED_HEAD says."""
    figure = row.figure
    name = figure.metric if figure.over is None else RATIO
    ours = f"none: {printable(row.reason)}" if row.ours is None else _with_ends(name, row.ours)
    return (
        printable(figure.label),
        title_of(figure.metric) + ("" if figure.over is None else ", a ratio"),
        show(name, figure.value),
        ours,
        "–" if row.ours_over_theirs is None else show(RATIO, row.ours_over_theirs.value),
        _to_first(row),
    )


def _with_ends(name: str, estimate: Estimate) -> str:
    ends = interval(name, estimate)
    few = launches_words(estimate.launches)
    return f"{show(name, estimate.value)}\n{few if ends == '–' else ends}"


def _to_first(row: JudgedPublished) -> str:
    """`theirs 0.234×, ours 0.251×`."""
    if row.theirs_over_first_ratio is None:
        return "–"
    ours = "unknown" if row.ours_over_first is None else _with_ends(RATIO, row.ours_over_first)
    return f"theirs {show(RATIO, row.theirs_over_first_ratio)}\nours {ours}"


def published_source(row: JudgedPublished) -> str:
    """Where it stands, and what differs."""
    case = "" if row.case is None else f"; ours: {row.case}"
    note = f"; {row.figure.note}" if row.figure.note else ""
    return printable(f"{row.figure.source}{case}{note}")
