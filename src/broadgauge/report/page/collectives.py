"""Which rows say how fast each collective was at each size? On the page."""

from broadgauge.report.page.cells import estimate_content
from broadgauge.report.page.markup import Html, table
from broadgauge.report.words.quantities import kind_of
from broadgauge.results.model import CaseSummary
from broadgauge.specs.units import show_size


def collectives_table(summary: CaseSummary) -> Html:
    """One row a collective and size; nothing where none was measured."""
    if not summary.collectives:
        return Html()
    head = (
        "collective",
        "size",
        "time",
        "algbw",
        "busbw",
        "on the wire",
        "of the ring's bytes",
        "result",
    )
    results = {True: "correct", False: "wrong", None: "not checked"}
    return table(
        head,
        [
            (
                kind_of(row),
                show_size(row.size_bytes),
                estimate_content("time_s", row.time_s),
                estimate_content("algbw_gbyte_per_s", row.algbw_gbyte_per_s),
                estimate_content("busbw_gbyte_per_s", row.busbw_gbyte_per_s),
                estimate_content("link_rate_gbps", row.link_rate_gbps),
                estimate_content("amplification_ratio", row.amplification_ratio),
                results[row.is_correct],
            )
            for row in summary.collectives
        ],
        class_="cards-below",
    )
