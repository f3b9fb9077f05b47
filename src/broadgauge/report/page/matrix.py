"""How were ranks placed, which path did bytes take inside a node, how did NICs share them?"""

from broadgauge.analysis.model import Analysis
from broadgauge.report.page.markup import Html, join, table, tag, with_sub_lines
from broadgauge.report.rows.matrix import (
    NICS_HOW,
    PATHS_HEAD,
    nic_table,
    path_rows,
    placement_rows,
    placement_title,
)
from broadgauge.results.comparing.placement import Placement, placements
from broadgauge.results.model import RunSummary
from broadgauge.results.nics import nic_balance


def placement(run: RunSummary) -> Html:
    """Equal world sizes side by side."""
    found = placements(run)
    if not found:
        return Html()
    return join(
        tag("h2", "Placement of the same number of ranks"),
        tag(
            "p",
            "Nodes × ranks a node. Ratios are to the first shape of the row, by interleaved pairs.",
            class_="how",
        ),
        [_placement(each) for each in found],
    )


def _placement(found: Placement) -> Html:
    rows = [[network, *map(with_sub_lines, cells)] for network, *cells in placement_rows(found)]
    return join(
        tag("h3", placement_title(found)),
        table(("network", *found.shapes), rows, class_="cards-below"),
    )


def paths(analysis: Analysis) -> Html:
    """Which way did the bytes inside a node really take?"""
    rows = path_rows(analysis)
    if not rows:
        return Html()
    return join(
        tag("h2", "Paths inside a node"),
        tag("p", "By NCCL's log and NVLink's counters, trial by trial.", class_="how"),
        table(PATHS_HEAD, rows, class_="text cards-below"),
    )


def nics(run: RunSummary) -> Html:
    """How evenly did the bytes go over the NICs?"""
    found = [balance for s in run.candidates if (balance := nic_balance(s)) is not None]
    if not found:
        return Html()
    head, rows = nic_table(found)
    return join(
        tag("h2", "NICs of a node"),
        tag("p", NICS_HOW, class_="how"),
        table(
            head,
            [(label, *map(with_sub_lines, cells)) for label, *cells in rows],
            class_="cards-below",
        ),
    )
