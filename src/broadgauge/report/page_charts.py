"""Which pictures stand on the page, with which words?"""

from collections.abc import Iterator

from broadgauge.analysis.model import AnalysedRun
from broadgauge.report.chart_parts import Spec
from broadgauge.report.charts_hosts import host_chart
from broadgauge.report.drawing import Drawing, draw
from broadgauge.report.kinds.kind import Chart, ChartGroup
from broadgauge.report.kinds.registry import in_report
from broadgauge.report.markup import Html, join, tag
from broadgauge.report.points import host_shares
from broadgauge.report.rows import by_workload
from broadgauge.results.model import CaseSummary


def figures(analysed: AnalysedRun, *, is_interactive: bool) -> Html:
    """All charts that this run has figures for."""
    drawn = [
        figure(f"chart-{index}", chart.title, chart.how, chart.spec, is_interactive=is_interactive)
        for index, chart in enumerate(_charts(analysed))
        if chart.spec is not None
    ]
    return tag("section", drawn, class_="charts")


def _charts(analysed: AnalysedRun) -> Iterator[Chart]:
    """Those of each kind of workload, jobs before what only communicates; then the hosts'."""
    run = analysed.run
    groups: dict[ChartGroup, list[CaseSummary]] = {}
    for summary in sorted(by_workload(run), key=lambda s: s.case.workload.only_communicates):
        for group in in_report(summary.case.workload).charts:
            groups.setdefault(group, []).append(summary)
    for group, summaries in groups.items():
        yield from group(analysed, summaries)
    yield Chart(
        title="What the cores did",
        how="User, system and softirq time of all nodes over the time of their cores, from "
        "counters outside the ranks.",
        spec=host_chart(host_shares(by_workload(run))),
    )


def figure(name: str, title: str, how: str, spec: Spec, *, is_interactive: bool) -> Html:
    """One chart under its title, with the words that say how it was made."""
    drawing = draw(spec, name)
    caption = tag("figcaption", title, tag("span", how, class_="how"))
    if not is_interactive:
        still = tag("div", Html(drawing.wide_svg), class_="still")
        return tag("figure", caption, tag("div", still, class_="drawn"), role="group")
    return tag("figure", caption, _living(name, drawing), role="group")


def _living(name: str, drawing: Drawing) -> Html:
    spec = tag("script", Html(drawing.vega_json), type="application/json", id=f"{name}-spec")
    chart = tag(
        "div",
        tag("div", Html(drawing.wide_svg), class_="still wide"),
        tag("div", Html(drawing.narrow_svg), class_="still narrow"),
        class_="chart",
        id=name,
    )
    return join(chart, spec)
