"""Which pictures stand on the page, with which words?"""

from collections.abc import Iterator

from broadgauge.advise.pairs import judged_pairs
from broadgauge.report.chart_parts import Spec
from broadgauge.report.charts_collectives import busbw_chart
from broadgauge.report.charts_hosts import host_chart
from broadgauge.report.charts_pairs import pair_chart
from broadgauge.report.charts_training import (
    cost_chart,
    loss_chart,
    step_chart,
    throughput_chart,
)
from broadgauge.report.drawing import Drawing, draw
from broadgauge.report.markup import Html, join, tag
from broadgauge.report.matrix_rows import pair_unit
from broadgauge.report.points import host_shares, loss_curves, step_boxes
from broadgauge.report.rows import by_workload
from broadgauge.results.model import RunSummary
from broadgauge.specs.units import show_size
from broadgauge.specs.workload import CollectivesWorkload


def figures(run: RunSummary, *, is_interactive: bool) -> Html:
    """All charts that this run has figures for."""
    drawn = [
        figure(f"chart-{index}", title, how, spec, is_interactive=is_interactive)
        for index, (title, how, spec) in enumerate(_charts(run))
        if spec is not None
    ]
    return tag("section", drawn, class_="charts")


def _charts(run: RunSummary) -> Iterator[tuple[str, str, Spec | None]]:
    jobs = [s for s in by_workload(run) if not isinstance(s.case.workload, CollectivesWorkload)]
    yield (
        "Throughput",
        "Tokens a second of all ranks; the line is the 95 % interval over launches.",
        throughput_chart(run, jobs),
    )
    yield (
        "What the network costs",
        "The same step with and without communication, interleaved in each trial. The line is the "
        "95 % interval of the whole step.",
        cost_chart(run, jobs),
    )
    yield from _of_ladders(run)
    yield (
        "Times of single steps",
        "Each tick a step (slowest rank; some of many), box: the middle half, line: 5th to 95th "
        "percentile, over all launches.",
        step_chart(run, step_boxes(run, jobs)),
    )
    yield (
        "Loss against time",
        "Training loss with communication on, against the time its steps took; first launch of "
        "each case.",
        loss_chart(run, loss_curves(run, jobs)),
    )
    yield from _of_pairs(run)
    yield from _of_collectives(run)
    yield (
        "What the cores did",
        "User, system and softirq time of all nodes over the time of their cores, from counters "
        "outside the ranks.",
        host_chart(host_shares(by_workload(run))),
    )


def _of_ladders(run: RunSummary) -> Iterator[tuple[str, str, Spec | None]]:
    # Here, so that runs without a ladder are shown without numpy.
    from broadgauge.advise.ladders import seen_ladders
    from broadgauge.report.charts_sensitivity import ladder_chart, ladder_words

    for ladder in seen_ladders(run):
        yield f"Sensitivity of {ladder.label}", ladder_words(ladder), ladder_chart(ladder)


def _of_pairs(run: RunSummary) -> Iterator[tuple[str, str, Spec | None]]:
    for summary in run.candidates:
        pairs = judged_pairs(summary)
        if pairs is not None:
            matrix, words = pairs.matrix, pairs.words
            yield (
                f"Pairs of {matrix.place}s, {summary.case.network_name}",
                f"{pair_unit(matrix)} of messages of {show_size(matrix.size_bytes)}, one way at a "
                f"time, mean over launches; slow ways are framed. "
                f"{words[:1].upper()}{words[1:]}.",
                pair_chart(pairs),
            )


def _of_collectives(run: RunSummary) -> Iterator[tuple[str, str, Spec | None]]:
    for op, dtype in dict.fromkeys((r.op, r.dtype) for s in run.candidates for r in s.collectives):
        yield (
            f"busbw of {op}, {dtype}",
            "Mean over launches with its 95 % interval, as nccl-tests defines busbw; dotted: the "
            "line rate, headers included.",
            busbw_chart(run, op, dtype),
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
