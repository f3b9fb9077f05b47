"""How were ranks placed, which path did bytes take inside a node, how did NICs share them?"""

from broadgauge.report.markup import Content, Html, join, table, tag
from broadgauge.report.matrix_rows import (
    NICS_HEAD,
    PATHS_HEAD,
    nic_rows,
    nic_sentence,
    path_row,
    placement_rows,
    placement_title,
)
from broadgauge.results.model import RunSummary
from broadgauge.results.nics import nic_balance
from broadgauge.results.placement import Placement, placements


def placement(run: RunSummary) -> Html:
    """Equal world sizes side by side."""
    found = placements(run)
    if not found:
        return Html()
    return join(
        tag("h2", "Placement of the same number of ranks"),
        tag(
            "p",
            "Nodes × ranks a node. The ratio is to the first shape of the row, by interleaved "
            "pairs.",
            class_="how",
        ),
        [_placement(each) for each in found],
    )


def _placement(found: Placement) -> Html:
    rows = [[network, *map(_lines, cells)] for network, *cells in placement_rows(found)]
    return join(
        tag("h3", placement_title(found)),
        table(("network", *found.shapes), rows, class_="cards-below"),
    )


def _lines(cell: str) -> Content:
    first, *more = cell.split("\n")
    return join(first, [tag("span", line, class_="sub") for line in more])


def paths(run: RunSummary) -> Html:
    """Which way did the bytes inside a node really take?"""
    rows = [row for summary in run.candidates if (row := path_row(summary)) is not None]
    if not rows:
        return Html()
    return join(
        tag("h2", "Paths inside a node"),
        tag("p", "Read from the library's own log of every trial.", class_="how"),
        table(PATHS_HEAD, rows, class_="text cards-below"),
    )


def nics(run: RunSummary) -> Html:
    """How evenly did the bytes go over the NICs?"""
    found = [balance for s in run.candidates if (balance := nic_balance(s)) is not None]
    if not found:
        return Html()
    uneven = [balance for balance in found if not balance.is_balanced]
    return join(
        tag("h2", "NICs of a node"),
        tag("p", "Bytes by each NIC's own counters, mean over nodes.", class_="how"),
        tag("ul", [tag("li", nic_sentence(balance)) for balance in uneven]) if uneven else "",
        table(
            NICS_HEAD,
            [row for balance in found for row in nic_rows(balance)],
            class_="cards-below",
        ),
    )
