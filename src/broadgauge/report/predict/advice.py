"""What follows from predictions? Recommendations, with their arithmetic where it is asked for."""

from collections.abc import Sequence

from rich.console import Console

from broadgauge.advise.recommendations.recommendation import Recommendation
from broadgauge.report.terminal.tables import heading, sentence

MOST_SAID = 8


def print_recommendations(
    found: Sequence[Recommendation], console: Console, *, is_explained: bool
) -> None:
    """The first few; all of them, with arithmetic and cautions, where they are explained."""
    if not found:
        return
    heading("What follows", console)
    shown = found if is_explained else found[:MOST_SAID]
    for each in shown:
        caution = f" ({'; '.join(each.cautions)})" if each.cautions else ""
        sentence(f"• {each.words}{caution}", console)
        for line in each.arithmetic if is_explained else ():
            sentence(f"  {line}", console, "dim")
    if len(shown) < len(found):
        sentence(f"{len(found) - len(shown)} more with --explain", console, "dim")
