"""Which pictures show what collectives and messages between pairs of ranks took?"""

from collections.abc import Iterator, Sequence

from broadgauge.analysis.model import AnalysedRun
from broadgauge.report.charts.collectives import busbw_chart
from broadgauge.report.charts.pairs import pair_chart
from broadgauge.report.kinds.kind import Chart, ChartGroup
from broadgauge.report.rows.matrix import pair_unit, pairs_shown
from broadgauge.results.model import CaseSummary
from broadgauge.specs.units import show_size


def _of_pairs(analysed: AnalysedRun, cases: Sequence[CaseSummary]) -> Iterator[Chart]:
    for summary in cases:
        pairs = pairs_shown(summary, analysed.analysis)
        if pairs is not None:
            matrix, words = pairs.matrix, pairs.words
            yield Chart(
                title=f"Pairs of {matrix.place}s, {summary.case.network_name}",
                how=f"{pair_unit(matrix)} of messages of {show_size(matrix.size_bytes)}, one "
                "direction at a time, mean over launches; slow pairs are framed. "
                f"{words[:1].upper()}{words[1:]}.",
                spec=pair_chart(pairs),
            )


def _of_collectives(analysed: AnalysedRun, cases: Sequence[CaseSummary]) -> Iterator[Chart]:
    has_rate = any(s.case.link is not None and s.case.link.node_rate_gbps for s in cases)
    dotted = "; dotted: the line rate, headers included" if has_rate else ""
    for op, dtype in dict.fromkeys((r.op, r.dtype) for s in cases for r in s.collectives):
        yield Chart(
            title=f"busbw of {op}, {dtype}",
            how=f"Mean over launches with its 95 % interval, as nccl-tests defines busbw{dotted}.",
            spec=busbw_chart(analysed.run, op, dtype),
        )


COLLECTIVE_PICTURES: tuple[ChartGroup, ...] = (_of_pairs, _of_collectives)
