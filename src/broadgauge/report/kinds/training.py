"""How is a training shown? Its steps have columns and pictures of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broadgauge.report.kinds.kind import ChartGroup, KindInReport
from broadgauge.report.markup import Html, join, tag
from broadgauge.results.model import CaseSummary

if TYPE_CHECKING:
    from rich.console import Console


class TrainingInReport(KindInReport):
    """A training as it is shown."""

    @property
    def charts(self) -> tuple[ChartGroup, ...]:
        from broadgauge.report.step_pictures import STEP_PICTURES

        return STEP_PICTURES

    def details_on_page(self, summary: CaseSummary) -> Html:
        return join([tag("p", words, class_="how") for words in _sentences(summary)])

    def print_details(self, summary: CaseSummary, console: Console) -> None:
        from broadgauge.report.terminal_tables import sentence

        for words in _sentences(summary):
            sentence(words, console, "dim")


def _sentences(summary: CaseSummary) -> tuple[str, ...]:
    from broadgauge.report.checkpoint_words import checkpoint_words
    from broadgauge.report.epoch_words import epoch_words

    epoch = epoch_words(summary)
    return (*(() if epoch is None else (epoch,)), *checkpoint_words(summary))
