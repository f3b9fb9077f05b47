"""What does `broadgauge sensitivity` print? The rungs beside their curve, and the answers."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from broadgauge.advise.ladders.ladder import Ladder
from broadgauge.predict.sensitivity.ladder import FittedRung, Sensitivity
from broadgauge.report.terminal.tables import heading, indented, print_table, sentence
from broadgauge.report.words.ladder import answers, forms, rates_note, rung_name, what_next
from broadgauge.report.words.quantities import show_estimate
from broadgauge.specs.units import show_rate, show_time

STEP = "step_time_s"


def print_ladders(ladders: Sequence[Ladder], console: Console) -> None:
    """Each ladder by itself."""
    for ladder in ladders:
        against = "what each network carries" if ladder.rates_words else "the link's rate"
        heading(f"{ladder.label}: {_what(ladder)} against {against}", console)
        if ladder.found is None:
            sentence(f"unknown: {ladder.why}", console)
        else:
            _print_rungs(ladder, ladder.found, console)
            _print_answers(ladder, console)
        _print_notes(ladder, console)


def _what(ladder: Ladder) -> str:
    if ladder.is_inverse:
        return f"1 / {ladder.metric}"
    return "step time" if ladder.metric == STEP else ladder.metric or "no metric"


def _print_rungs(ladder: Ladder, found: Sensitivity, console: Console) -> None:
    rates = ["network", "carries a node"] if ladder.rates_words else ["rate a node"]
    head = [*rates, "step time", "curve", "off by"]
    head += ["network cost", "by the curve"] if ladder.costs else []
    head += ["predicted"] if ladder.predicted else []
    print_table(head, [_cells(ladder, rung) for rung in found.rungs], console)


def _cells(ladder: Ladder, rung: FittedRung) -> tuple[str, ...]:
    cells = [
        *((rung.name, show_rate(rung.rate_gbps)) if rung.name else (rung_name(rung),)),
        show_estimate(STEP, rung.step_s),
        show_time(rung.fitted_s),
        signed_percent(rung.off_ratio),
    ]
    if ladder.costs:
        cost = next((c for c in ladder.costs if c.rate_gbps == rung.rate_gbps), None)
        cells += ["–", "–"] if cost is None else [show_time(cost.measured_s.value), ""]
        if cost is not None:
            cells[-1] = show_time(cost.curve_s) + (" *" if cost.is_apart else "")
    if ladder.predicted:
        step = next((p for p in ladder.predicted if p.rate_gbps == rung.rate_gbps), None)
        cells.append("–" if step is None else show_time(step.step_s.value))
    return tuple(cells)


def signed_percent(ratio: float) -> str:
    """`+0.4 %`."""
    return f"{ratio:+.1%}".replace("%", " %").replace("-0.0", "+0.0").replace("-", "−")


def _print_answers(ladder: Ladder, console: Console) -> None:
    console.print()
    for title, words in answers(ladder):
        console.print(Text(title, style="bold"))
        for line in indented(Text(f"{words}."), console):
            console.print(line)


def _print_notes(ladder: Ladder, console: Console) -> None:
    console.print()
    for words in ladder.disagreements:
        sentence(f"disagrees: {words}", console, "yellow")
    if any(cost.is_apart for cost in ladder.costs):
        sentence("* further apart than both intervals allow", console, "dim")
    known = (rates_note(ladder), forms(ladder))
    for words in (each for each in known if each is not None):
        sentence(f"note: {words}", console, "dim")
    for each in ladder.left_out:
        step = "" if each.step_s is None else f", {show_time(each.step_s)} a step"
        name = each.summary.case.network_name
        sentence(f"note: {name} is not in the curve{step}: {each.why}", console, "dim")
    for words in ladder.notes:
        sentence(f"note: {words}", console, "dim")
    options = what_next(ladder)
    if options is not None:
        sentence(options, console)
