"""How is a training shown? Its steps have columns and pictures of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from broadgauge.report.kinds.kind import ChartGroup, KindInReport
from broadgauge.report.page.markup import Html, join, tag
from broadgauge.report.words.completion import completion_words
from broadgauge.results.model import CaseSummary
from broadgauge.specs.workloads.workload import TrainWorkload

if TYPE_CHECKING:  # the page does without rich
    from rich.console import Console


@dataclass(frozen=True, slots=True)
class TrainingInReport(KindInReport):
    """A training as it is shown."""

    train: TrainWorkload

    @property
    def charts(self) -> tuple[ChartGroup, ...]:
        from broadgauge.report.charts.step_pictures import STEP_PICTURES

        return STEP_PICTURES

    def details_on_page(self, summary: CaseSummary) -> Html:
        sentences = completion_words(self.train, summary)
        return join(*(tag("p", words, class_="how") for words in sentences))

    def print_details(self, summary: CaseSummary, console: Console) -> None:
        from broadgauge.report.terminal.tables import sentence

        for words in completion_words(self.train, summary):
            sentence(words, console, "dim")
