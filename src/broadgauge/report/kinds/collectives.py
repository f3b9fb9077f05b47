"""How are collectives shown? By size; messages between pairs by the slowest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broadgauge.report.kinds.kind import ChartGroup, KindInReport
from broadgauge.report.page.markup import Html
from broadgauge.report.words.cells import Cell, estimate_cell
from broadgauge.results.model import CaseSummary
from broadgauge.results.pair_summaries import pair_matrix

if TYPE_CHECKING:  # the page does without rich
    from rich.console import Console


class CollectivesInReport(KindInReport):
    """Collectives as they are shown."""

    @property
    def charts(self) -> tuple[ChartGroup, ...]:
        from broadgauge.report.charts.collective_pictures import COLLECTIVE_PICTURES

        return COLLECTIVE_PICTURES

    def figure(self, summary: CaseSummary) -> Cell | None:
        """Of pairs of nodes, the slowest against the median."""
        matrix = pair_matrix(summary)
        if matrix is None:
            return None
        cell = estimate_cell("slowest_pair_ratio", matrix.slowest.over_median)
        return cell and Cell(main=cell.main, sub=cell.sub, below="slowest pair", detail=cell.detail)

    def details_on_page(self, summary: CaseSummary) -> Html:
        from broadgauge.report.page.collectives import collectives_table

        return collectives_table(summary)

    def print_details(self, summary: CaseSummary, console: Console) -> None:
        from broadgauge.report.terminal.collectives import print_collectives

        print_collectives(summary, console)
