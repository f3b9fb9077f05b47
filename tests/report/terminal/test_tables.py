"""Does a table that is laid out plainly look as rich would lay it out?"""

import io
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from broadgauge.analysis.analyse import analysed
from broadgauge.analysis.model import AnalysedRun
from broadgauge.report.terminal.closing import print_closing_table
from broadgauge.report.terminal.tables import _columns, fits_columns, print_table
from broadgauge.results.summary import summarise_stored

WORDS = st.text("ab 1–×", max_size=12).map(str.strip)


def printed(console: Console, show) -> str:  # type: ignore[no-untyped-def]
    show(console)
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


@given(
    st.integers(1, 4).flatmap(
        lambda width: st.tuples(
            st.lists(WORDS.filter(bool), min_size=width, max_size=width),
            st.lists(st.lists(WORDS, min_size=width, max_size=width), min_size=1, max_size=4),
        )
    )
)
def test_plain_tables_are_richs(table: tuple[list[str], list[list[str]]]) -> None:
    head, rows = table
    consoles = [Console(file=io.StringIO(), width=60) for _ in range(2)]
    if fits_columns(head, rows, consoles[0]):
        ours = printed(consoles[0], lambda console: print_table(head, rows, console))
        assert ours == printed(consoles[1], lambda console: console.print(_columns(head, rows)))


def test_no_figure_is_cut_at_any_width(repository: Path) -> None:
    """rich takes what is too much from the widest column, its least width or not."""
    found = analysed(summarise_stored(repository / "tests/results/golden/schema-1"))
    widths = [width for width in range(60, 130) if _header(found, width).startswith("network  ")]
    assert min(widths) < 100, "a table before its figures are blocks"
    for width in widths:
        assert _header(found, width).endswith("  network cost"), width


def _header(found: AnalysedRun, width: int) -> str:
    console = Console(file=io.StringIO(), width=width)
    return printed(console, lambda console: print_closing_table(found, console)).split("\n")[0]
