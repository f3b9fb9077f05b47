"""How are the phases on a storage shown? By phase, the state of the cache beside each figure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broadgauge.report.cells import Cell, estimate_cell
from broadgauge.report.kinds.kind import ChartGroup, KindInReport
from broadgauge.report.markup import Html
from broadgauge.report.quantities import title_of
from broadgauge.results.kinds.registry import in_results
from broadgauge.results.model import CaseSummary

if TYPE_CHECKING:  # the page does without rich
    from rich.console import Console


class StorageInReport(KindInReport):
    """Phases on a storage as they are shown."""

    @property
    def charts(self) -> tuple[ChartGroup, ...]:
        from broadgauge.report.storage_pictures import STORAGE_PICTURES

        return STORAGE_PICTURES

    def figure(self, summary: CaseSummary) -> Cell | None:
        """The first that was measured of those that speak for it."""
        for name in in_results(summary.case.workload).headline_metrics:
            cell = estimate_cell(name, summary.estimates.get(name))
            if cell is not None:
                return Cell(main=cell.main, sub=f"{cell.sub}\n{title_of(name)}", detail=cell.detail)
        return None

    def details_on_page(self, summary: CaseSummary) -> Html:
        from broadgauge.report.page_storage import storage_rows_table

        return storage_rows_table(summary)

    def print_details(self, summary: CaseSummary, console: Console) -> None:
        from broadgauge.report.terminal_storage_rows import print_storage_rows

        print_storage_rows(summary, console)
