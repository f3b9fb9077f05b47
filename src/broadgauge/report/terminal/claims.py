"""What do hypotheses and published figures say in the terminal?"""

from rich.console import Console
from rich.text import Text

from broadgauge.analysis.model import Analysis, JudgedHypothesis
from broadgauge.report.terminal.tables import heading, indented, print_table
from broadgauge.report.words.claims import (
    ANSWER_HEAD,
    PUBLISHED_HEAD,
    answer_cells,
    claim,
    published_cells,
    published_source,
)
from broadgauge.report.words.printable import printable
from broadgauge.results.comparing.hypotheses import HypothesisVerdict

STYLES = {
    HypothesisVerdict.SUPPORTED: "bold green",
    HypothesisVerdict.REFUTED: "bold yellow",
    HypothesisVerdict.CANNOT_TELL: "bold",
}
MOST_CAVEATS = 3


def print_hypotheses(
    analysis: Analysis, console: Console, *, has_all: bool = False, details: str | None = None
) -> None:
    """The verdicts; `has_all`: with every case and caveat. `details`: the command that prints
    these, where there is one."""
    if analysis.hypotheses:
        heading("Hypotheses", console)
    for result in analysis.hypotheses:
        _print_hypothesis(result, console, has_all=has_all)
        _print_caveats(result, console, None if has_all else MOST_CAVEATS, details)


def _print_hypothesis(result: JudgedHypothesis, console: Console, *, has_all: bool) -> None:
    if has_all:
        console.print()
    title = Text(result.verdict.value, style=STYLES[result.verdict])
    title.append(f"  {printable(result.hypothesis.statement)}", style="none")
    for line in indented(title, console, 0):
        console.print(line)
    for words in _details(result, has_all=has_all):
        for line in indented(Text(words), console):
            console.print(line)
    if has_all and len(result.answers) > 1:
        rows = [answer_cells(result, answer) for answer in result.answers]
        print_table(ANSWER_HEAD, rows, console)


def _print_caveats(
    result: JudgedHypothesis, console: Console, most: int | None, details: str | None
) -> None:
    shown = result.caveats[:most]
    more = len(result.caveats) - len(shown)
    rest = f"and {more} more" if details is None else f"and {more} more: `{details}`"
    for caveat in (*shown, *([rest] if more else [])):
        for line in indented(Text(f"caveat: {caveat}", style="dim"), console):
            console.print(line)


def _details(result: JudgedHypothesis, *, has_all: bool) -> list[str]:
    lines = [f"{result.hypothesis.name}: {claim(result.hypothesis)}"]
    if len(result.answers) == 1:
        label, against, figure, interval, _ = answer_cells(result, result.answers[0])
        over = "" if against == "–" else f" over {against}"
        lines.append(f"{figure} ({interval}) for {label}{over}")
    elif result.answers and not has_all:
        cells = (answer_cells(result, answer) for answer in result.answers)
        lines += [
            f"{answer} for {label}" if figure == "–" else f"{figure} ({ends}) for {label}"
            for label, _, figure, ends, answer in cells
        ]
    return [*lines, result.reason] if result.reason else lines


def print_published(analysis: Analysis, console: Console) -> None:
    """Their figures beside ours."""
    rows = analysis.published
    if not rows:
        return
    heading("Published figures beside ours", console)
    print_table(PUBLISHED_HEAD, [published_cells(row) for row in rows], console)
    for row in rows:
        label = printable(row.figure.label)
        for line in indented(Text(f"{label}: {published_source(row)}", style="dim"), console):
            console.print(line)
