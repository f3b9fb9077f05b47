"""What did NCCL do? Its network and way from rank to rank, on the page."""

from broadgauge.analysis.model import Analysis
from broadgauge.report.page.markup import Html, join, table, tag, with_sub_lines
from broadgauge.report.rows.nccl import (
    NCCL_HEAD,
    NCCL_HOW,
    WAYS,
    RankWays,
    nccl_rows,
    path_matrices,
    way_counts,
)


def nccl(analysis: Analysis) -> Html:
    """A row a case, and which way its bytes went from rank to rank."""
    rows = nccl_rows(analysis)
    if not rows:
        return Html()
    return join(
        tag("h2", "What NCCL did"),
        tag("p", NCCL_HOW, class_="how"),
        table(
            NCCL_HEAD,
            [(label, *map(_wrapped, cells)) for label, *cells in rows],
            class_="text cards-below",
        ),
        [_matrix(each) for each in path_matrices(analysis)],
    )


def _wrapped(cell: str) -> Html:
    return with_sub_lines(cell, class_="sub wrapped")


def _matrix(matrix: RankWays) -> Html:
    """Ranks that send down the side, those that receive along the top."""
    lines = [way.line for way in matrix.ways if way.line is not None]
    return tag(
        "div",
        tag("h3", "From rank to rank: ", ", ".join(matrix.labels)),
        _drawn(matrix) if matrix.is_drawn else "",
        tag("p", way_counts(matrix.ways), class_="how"),
        tag("pre", "\n".join(lines)) if lines else "",
        class_="ways",
    )


def _drawn(matrix: RankWays) -> Html:
    ranks = range(matrix.num_ranks)
    head = tag(
        "tr", tag("th", "from", class_="corner"), [tag("th", str(n), scope="col") for n in ranks]
    )
    rows = [
        tag("tr", tag("th", str(a), scope="row"), [_cell(matrix, (a, b)) for b in ranks])
        for a in ranks
    ]
    legend = [
        tag("li", tag("span", kind.letter, class_=f"way {_class_of(name)}"), f" {kind.meaning}")
        for name, kind in matrix.legend
    ]
    return join(
        tag(
            "div",
            tag("table", tag("thead", head), tag("tbody", rows), class_="pairs"),
            class_="scroll",
        ),
        tag("ul", legend, tag("li", tag("span", "·", class_="way"), " nothing is sent directly")),
    )


def _cell(matrix: RankWays, pair: tuple[int, int]) -> Html:
    ways = matrix.cells.get(pair)
    if ways is None:
        return tag("td", "·" if pair[0] != pair[1] else "")
    words = f"{pair[0]} → {pair[1]}: {', '.join(ways)}"
    return tag("td", WAYS[ways[0]].letter, class_=_class_of(ways[0]), title=words)


def _class_of(way: str) -> str:
    return f"way-{way.lower()}"
