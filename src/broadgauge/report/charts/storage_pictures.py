"""Which pictures show what storages gave?"""

from collections.abc import Iterator, Sequence

from broadgauge.analysis.model import AnalysedRun
from broadgauge.report.charts.parts import bars_chart, tips
from broadgauge.report.kinds.kind import Chart, ChartGroup
from broadgauge.results.model import CaseSummary
from broadgauge.specs.units import show_bandwidth

_HOW = (
    "Bytes of all ranks over the slowest rank's time; the line is the 95 % interval over launches."
)


def _of_storages(analysed: AnalysedRun, cases: Sequence[CaseSummary]) -> Iterator[Chart]:
    tooltip = tips(case="case", rate="words", interval="interval", launches="launches")
    for title, metric, how in (
        ("Read from storages", "read_gbyte_per_s", _HOW),
        ("Written to storages", "write_gbyte_per_s", f"{_HOW} Until fsync has returned."),
    ):
        yield Chart(
            title=title,
            how=how,
            spec=bars_chart(
                analysed.run, cases, metric, (show_bandwidth, "all ranks together"), tooltip
            ),
        )


STORAGE_PICTURES: tuple[ChartGroup, ...] = (_of_storages,)
