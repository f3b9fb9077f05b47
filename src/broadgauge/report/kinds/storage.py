"""How is a phase on a storage shown? Its repetitions, with the parts of the time and the cache; of
a checkpoint, what training waits and when it is durable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from broadgauge.report.kinds.kind import ChartGroup, KindInReport
from broadgauge.report.page.markup import Html
from broadgauge.report.words.cells import Cell, estimate_cell
from broadgauge.results.model import CaseSummary
from broadgauge.specs.workloads.workload import StorageWorkload

if TYPE_CHECKING:  # the page does without rich
    from rich.console import Console


@dataclass(frozen=True, slots=True)
class StorageInReport(KindInReport):
    """A phase as it is shown."""

    storage: StorageWorkload

    @property
    def charts(self) -> tuple[ChartGroup, ...]:
        from broadgauge.report.charts.storage_pictures import CHECKPOINT_PICTURES, STORAGE_PICTURES

        return STORAGE_PICTURES if self.storage.saved_model is None else CHECKPOINT_PICTURES

    def figure(self, summary: CaseSummary) -> Cell | None:
        """Of reads, and below what writes reached; of a checkpoint what training waits, and below
        when it is durable."""
        if self.storage.saved_model is not None:
            stall, durable = (
                estimate_cell(name, summary.estimates.get(name))
                for name in ("save_stall_s", "save_durable_s")
            )
            told = (
                "training waits" if durable is None else f"training waits; durable {durable.main}"
            )
            return stall and Cell(main=stall.main, sub=stall.sub, below=told, detail=stall.detail)
        read, write = (
            estimate_cell(name, summary.estimates.get(name))
            for name in ("read_gbyte_per_s", "write_gbyte_per_s")
        )
        below = "read" if write is None else f"read; write {write.main}"
        return read and Cell(main=read.main, sub=read.sub, below=below, detail=read.detail)

    def details_on_page(self, summary: CaseSummary) -> Html:
        from broadgauge.report.page.file_accesses import file_accesses_table

        return file_accesses_table(summary)

    def print_details(self, summary: CaseSummary, console: Console) -> None:
        from broadgauge.report.terminal.file_accesses import print_file_accesses

        print_file_accesses(summary, console)
