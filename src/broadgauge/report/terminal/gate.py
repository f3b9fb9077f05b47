"""What does a gate print? Each case's slowdown with its interval, and what that means."""

from rich.console import Console
from rich.text import Text

from broadgauge.report.terminal.tables import print_table, sentence
from broadgauge.report.words.gate import GATE_HEAD, gate_cells, gate_sentences
from broadgauge.results.comparing.gate import Gate, GateOutcome
from broadgauge.specs.plan import BaselineRun
from broadgauge.specs.units import show_ratio

STYLES = {
    GateOutcome.REGRESSION: "bold red",
    GateOutcome.CANNOT_TELL: "bold yellow",
    GateOutcome.NO_REGRESSION: "bold green",
}


def print_gate(gate: Gate, console: Console, baseline: BaselineRun | None = None) -> None:
    """A table, a sentence a case, and the outcome of all in the last line."""
    if baseline is not None:
        sentence(
            f"Against the baseline {baseline.run}, interleaved, paired block by block.", console
        )
        console.print()
    if gate.rows:
        print_table(GATE_HEAD, [gate_cells(row) for row in gate.rows], console)
        console.print()
    for said in gate_sentences(gate):
        sentence(said, console)
    text = Text(f"fail above {show_ratio(gate.limit_ratio)}: ")
    text.append(gate.outcome.value, style=STYLES[gate.outcome])
    text.append(f" ({gate.reason})")
    for line in text.wrap(console, console.width):
        line.rstrip()
        console.print(line)
