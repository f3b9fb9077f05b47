"""Which rows say how fast each collective was at each size? In the terminal."""

from rich.console import Console
from rich.text import Text

from broadgauge.report.quantities import kind_of, show, show_estimate
from broadgauge.report.terminal_tables import print_table
from broadgauge.results.model import CaseSummary
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.units import show_size


def print_collectives(summary: CaseSummary, console: Console) -> None:
    """A table a collective; nothing where none was measured."""
    if not summary.collectives:
        return
    console.print()

    def words(name: str, estimate: Estimate | None) -> str:
        return "–" if estimate is None else show_estimate(name, estimate)

    for kind in dict.fromkeys(map(kind_of, summary.collectives)):
        rows = [row for row in summary.collectives if kind_of(row) == kind]
        console.print(Text(kind, style="bold"))
        print_table(
            ("size", "time", "busbw", "on the wire", "× ring"),
            [
                (
                    f"{show_size(row.size_bytes)}{' WRONG' if row.is_correct is False else ''}",
                    words("time_s", row.time_s),
                    words("busbw_gbyte_per_s", row.busbw_gbyte_per_s),
                    "–"
                    if row.link_rate_gbps is None
                    else show("link_rate_gbps", row.link_rate_gbps.value),
                    "–"
                    if row.amplification_ratio is None
                    else show("amplification_ratio", row.amplification_ratio.value),
                )
                for row in rows
            ],
            console,
        )
