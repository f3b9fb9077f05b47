"""How is a phase on a storage shown? Its repetitions, with the parts of the time and the cache; of
a checkpoint, what training waits and when it is durable; of batches, what steps wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broadgauge.report.kinds.kind import ChartGroup, KindInReport
from broadgauge.report.page.markup import Html
from broadgauge.report.words.cells import Cell, estimate_cell
from broadgauge.results.model import CaseSummary

if TYPE_CHECKING:  # the page does without rich
    from rich.console import Console


class StorageInReport(KindInReport):
    """Any phase as it is shown."""

    def details_on_page(self, summary: CaseSummary) -> Html:
        from broadgauge.report.page.file_accesses import file_accesses_table

        return file_accesses_table(summary)

    def print_details(self, summary: CaseSummary, console: Console) -> None:
        from broadgauge.report.terminal.file_accesses import print_file_accesses

        print_file_accesses(summary, console)


class RawFilesInReport(StorageInReport):
    @property
    def charts(self) -> tuple[ChartGroup, ...]:
        from broadgauge.report.charts.storage_pictures import RAW_FILES_PICTURES

        return RAW_FILES_PICTURES

    def figure(self, summary: CaseSummary) -> Cell | None:
        """Of reads, and below what writes reached."""
        read, write = _cells(summary, "read_gbyte_per_s", "write_gbyte_per_s")
        below = "read" if write is None else f"read; write {write.main}"
        return read and Cell(main=read.main, sub=read.sub, below=below, detail=read.detail)


class ModelLoadInReport(StorageInReport):
    @property
    def charts(self) -> tuple[ChartGroup, ...]:
        from broadgauge.report.charts.storage_pictures import MODEL_LOAD_PICTURES

        return MODEL_LOAD_PICTURES

    def figure(self, summary: CaseSummary) -> Cell | None:
        """Until the weights are there, and below the rate of reading them."""
        time, rate = _cells(summary, "model_load_s", "read_gbyte_per_s")
        below = "model loaded" if rate is None else f"model loaded; {rate.main}"
        return time and Cell(main=time.main, sub=time.sub, below=below, detail=time.detail)


class CheckpointInReport(StorageInReport):
    @property
    def charts(self) -> tuple[ChartGroup, ...]:
        from broadgauge.report.charts.storage_pictures import CHECKPOINT_PICTURES

        return CHECKPOINT_PICTURES

    def figure(self, summary: CaseSummary) -> Cell | None:
        """What training waits, and below when it is durable."""
        stall, durable = _cells(summary, "save_stall_s", "save_durable_s")
        below = "training waits" if durable is None else f"training waits; durable {durable.main}"
        return stall and Cell(main=stall.main, sub=stall.sub, below=below, detail=stall.detail)


class BatchesInReport(StorageInReport):
    @property
    def charts(self) -> tuple[ChartGroup, ...]:
        from broadgauge.report.charts.storage_pictures import BATCHES_PICTURES

        return BATCHES_PICTURES

    def figure(self, summary: CaseSummary) -> Cell | None:
        """What a rank waits for 100 of its samples, and below what the slow steps wait."""
        wait, slow = _cells(summary, "wait_per_100_samples_s", "batch_wait_p99_s")
        below = "per 100 samples" if slow is None else f"per 100 samples; p99 {slow.main} a step"
        return wait and Cell(main=wait.main, sub=wait.sub, below=below, detail=wait.detail)


def _cells(summary: CaseSummary, *metrics: str) -> tuple[Cell | None, ...]:
    return tuple(estimate_cell(name, summary.estimates.get(name)) for name in metrics)
