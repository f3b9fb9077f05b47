"""What must be known of a workload to show what was measured of it?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from broadgauge.analysis.model import AnalysedRun
from broadgauge.report.charts.parts import Spec
from broadgauge.report.page.markup import Html
from broadgauge.report.words.cells import Cell
from broadgauge.results.model import CaseSummary

if TYPE_CHECKING:  # the page does without rich
    from rich.console import Console


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One picture and its words."""

    title: str
    how: str
    """How its figures were had."""
    spec: Spec | None
    """None: the run has no figures for it."""


ChartGroup = Callable[[AnalysedRun, Sequence[CaseSummary]], Iterator[Chart]]
"""Draws all cases of the kinds that name it together."""


class KindInReport:
    """A workload as it is shown. Every kind has a row in the closing table, all its metrics and the
    verdict without saying anything here.

    What draws is imported where it is asked for: the terminal's tables do without.
    """

    @property
    def charts(self) -> tuple[ChartGroup, ...]:
        """The pictures of the page, in their order."""
        return ()

    def figure(self, summary: CaseSummary) -> Cell | None:
        """What stands in the closing table's column for figures that have no other."""
        del summary
        return None

    def details_on_page(self, summary: CaseSummary) -> Html:
        """What stands below a case's metrics."""
        del summary
        return Html()

    def print_details(self, summary: CaseSummary, console: Console) -> None:
        """The same in the terminal."""
