"""Which rows say how fast each collective was at each size? In the terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from broadgauge.report.terminal.tables import print_table
from broadgauge.report.words.quantities import column_like, kind_of, show, show_estimate
from broadgauge.results.model import CaseSummary
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.units import show_size


def print_collectives(summary: CaseSummary, console: Console) -> None:
    """A table a collective; nothing where none was measured."""
    if not summary.collectives:
        return
    console.print()

    for kind in dict.fromkeys(map(kind_of, summary.collectives)):
        rows = [row for row in summary.collectives if kind_of(row) == kind]
        console.print(Text(kind, style="bold"))
        sizes = [
            f"{show_size(row.size_bytes)}{' WRONG' if row.is_correct is False else ''}"
            for row in rows
        ]
        cells = (
            sizes,
            _column("time_s", [row.time_s for row in rows]),
            _column("busbw_gbyte_per_s", [row.busbw_gbyte_per_s for row in rows]),
            _column("link_rate_gbps", [row.link_rate_gbps for row in rows], has_spread=False),
            _column(
                "amplification_ratio", [row.amplification_ratio for row in rows], has_spread=False
            ),
        )
        head = ("size", "time", "busbw", "on the wire", "× ring")
        print_table(head, list(zip(*cells, strict=True)), console)


def _column(
    name: str, estimates: Sequence[Estimate | None], *, has_spread: bool = True
) -> list[str]:
    """All in one unit."""
    like = column_like(name, (each.value for each in estimates if each is not None))
    words = show_estimate if has_spread else _value
    return ["–" if each is None else words(name, each, like) for each in estimates]


def _value(name: str, estimate: Estimate, like: float | None) -> str:
    return show(name, estimate.value, like=like)
