"""How are naps shown?"""

from collections.abc import Iterator, Sequence

from broadgauge.analysis.model import AnalysedRun
from broadgauge.report.charts.parts import Spec, frame, rows_of
from broadgauge.report.kinds.kind import Chart, ChartGroup, KindInReport
from broadgauge.report.page.markup import Html, tag
from broadgauge.report.words.cells import Cell, estimate_cell
from broadgauge.results.model import CaseSummary


def _naps(run: AnalysedRun, cases: Sequence[CaseSummary]) -> Iterator[Chart]:
    rows: list[Spec] = [{"case": s.case.label, "nap": s.value("nap_time_s")} for s in cases]
    encoding: Spec = {
        "x": {"field": "nap", "type": "quantitative"},
        "y": {"field": "case", "type": "nominal"},
    }
    spec = frame([{"mark": {"type": "bar"}, "encoding": encoding}], height=100)
    yield Chart(title="Naps of all ranks", how="The longest.", spec=spec | {"data": rows_of(rows)})


class ToyInReport(KindInReport):
    @property
    def charts(self) -> tuple[ChartGroup, ...]:
        return (_naps,)

    def figure(self, summary: CaseSummary) -> Cell | None:
        cell = estimate_cell("nap_time_s", summary.estimates.get("nap_time_s"))
        return cell and Cell(main=cell.main, sub=cell.sub, below="longest nap", detail=cell.detail)

    def details_on_page(self, summary: CaseSummary) -> Html:
        return tag("p", f"all of {len(summary.good)} trials napped")
