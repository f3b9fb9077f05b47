"""Which pictures stand on the page, with which words?"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from broadgauge.analysis.model import AnalysedRun
from broadgauge.report.charts.drawing import Drawing, draw
from broadgauge.report.charts.hosts import host_chart
from broadgauge.report.charts.parts import Spec
from broadgauge.report.charts.points import host_shares
from broadgauge.report.kinds.kind import Chart, ChartGroup
from broadgauge.report.kinds.registry import in_report
from broadgauge.report.page.markup import Html, join, tag
from broadgauge.report.rows.closing import by_workload
from broadgauge.results.model import CaseSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A chart that is drawn."""

    name: str
    """Unique in the page."""
    title: str
    how: str
    drawing: Drawing


def pictures(analysed: AnalysedRun) -> tuple[Picture, ...]:
    """All charts that this run has figures for."""
    return tuple(
        _picture(f"chart-{index}", chart.title, chart.how, chart.spec)
        for index, chart in enumerate(_charts(analysed))
        if chart.spec is not None
    )


def _picture(name: str, title: str, how: str, spec: Spec) -> Picture:
    return Picture(name=name, title=title, how=how, drawing=draw(spec, name))


def figures(drawn: Iterable[Picture], *, is_interactive: bool) -> Html:
    """They stand under each other."""
    figures = [_figure(picture, is_interactive=is_interactive) for picture in drawn]
    return tag("section", figures, class_="charts")


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
    return _figure(_picture(name, title, how, spec), is_interactive=is_interactive)


def _figure(picture: Picture, *, is_interactive: bool) -> Html:
    caption = tag("figcaption", picture.title, tag("span", picture.how, class_="how"))
    if not is_interactive:
        still = tag("div", Html(picture.drawing.wide_svg), class_="still")
        return tag("figure", caption, tag("div", still, class_="drawn"), role="group")
    return tag("figure", caption, _living(picture.name, picture.drawing), role="group")


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
