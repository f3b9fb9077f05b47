"""How is a user's own command shown? Its first metric speaks for it."""

from dataclasses import dataclass

from broadgauge.report.kinds.kind import ChartGroup, KindInReport
from broadgauge.report.words.cells import Cell, estimate_cell
from broadgauge.report.words.quantities import title_of
from broadgauge.results.model import CaseSummary
from broadgauge.specs.workloads.workload import CommandWorkload


@dataclass(frozen=True, slots=True)
class CommandInReport(KindInReport):
    """A command as it is shown."""

    command: CommandWorkload

    @property
    def charts(self) -> tuple[ChartGroup, ...]:
        from broadgauge.report.charts.step_pictures import STEP_PICTURES

        return STEP_PICTURES

    def figure(self, summary: CaseSummary) -> Cell | None:
        name = self.command.metrics[0].name
        cell = estimate_cell(name, summary.estimates.get(name))
        if cell is None or name == "step_time_s":  # which has a column
            return None
        return Cell(main=cell.main, sub=cell.sub, below=title_of(name), detail=cell.detail)
