"""Which rows say how ranks were placed, which path was used, and how NICs shared the bytes?"""

from collections.abc import Sequence

from broadgauge.advise.pairs.slow_pairs_over_launches import JudgedPairs
from broadgauge.analysis.model import Analysis, PathTaken
from broadgauge.report.words.quantities import show, spread, title_of
from broadgauge.results.comparing.placement import PlacedCase, Placement, PlacementRow
from broadgauge.results.model import CaseSummary
from broadgauge.results.nics import IMBALANCE, NicBalance, NicShare
from broadgauge.results.pair_summaries import PairMatrix, pair_matrix
from broadgauge.specs.units import show_bandwidth, show_count, show_ratio, show_size

PATHS_HEAD = ("case", "asked for", "really used", "channels", "evidence")
NICS_HOW = (
    "Sent in a trial by each NIC's own counters, mean over nodes; below it the NIC's part of its "
    f"node's bytes, lowest and highest. Not even: a NIC carries more than {IMBALANCE:g} times an "
    "even share, so that the others wait for it."
)


def placement_title(placement: Placement) -> str:
    """`ddp, 4 ranks: step time`."""
    return f"{placement.workload}, {placement.world_size} ranks: {title_of(placement.metric)}"


def placement_rows(placement: Placement) -> list[tuple[str, ...]]:
    """One row a network, one column a shape."""
    return [
        (row.network, *(_placed(placement.metric, cell, _first(row)) for cell in row.cells))
        for row in placement.rows
    ]


def _first(row: PlacementRow) -> str:
    return next((cell.summary.case.shape for cell in row.cells if cell is not None), "")


def _placed(metric: str, cell: PlacedCase | None, first: str) -> str:
    if cell is None:
        return "–"
    text = f"{show(metric, cell.figure.value)} {spread(metric, cell.figure)}"
    if cell.over_first is None:
        return text
    return f"{text}\n{show('speedup_ratio', cell.over_first.value)} of {first}"


def path_rows(analysis: Analysis) -> list[tuple[str, ...]]:
    """Which way did the bytes really take? One row a case in which somebody looked."""
    return [
        _path_row(case.label, case.path)
        for case in analysis.cases
        if case.path is not None and case.arm == "candidate"
    ]


def _path_row(label: str, path: PathTaken) -> tuple[str, ...]:
    ends = dict.fromkeys((*path.channels[:1], *path.channels[-1:]))
    return (
        label,
        "nothing named" if path.asked is None else path.asked,
        ", ".join(path.used),
        " to ".join(str(end) for end in ends) or "–",
        "–" if path.evidence is None else path.evidence,
    )


def nic_table(found: Sequence[NicBalance]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Head and rows: one a case, one column a NIC with what it sent and its part of the node."""
    names = tuple(dict.fromkeys(nic.name for balance in found for nic in balance.nics))
    rows = []
    for balance in found:
        nics = {nic.name: nic for nic in balance.nics}
        cells = [_nic(nics[name]) if name in nics else "–" for name in names]
        rows.append((balance.summary.case.label, *cells, _balance(balance)))
    return ("case", *names, "balance"), rows


def _nic(nic: NicShare) -> str:
    low, high = show_ratio(nic.lowest_ratio, 2), show_ratio(nic.highest_ratio, 2)
    part = low if low == high else f"{low.removesuffix(' %')}–{high}"
    return f"{show_size(nic.tx_bytes.value)}\n{part}"


def _balance(balance: NicBalance) -> str:
    if balance.is_balanced:
        return "even"
    return f"{show('speedup_ratio', balance.most_over_even_ratio)}\n{balance.busiest}"


def pairs_shown(summary: CaseSummary, analysis: Analysis) -> JudgedPairs | None:
    """The pairs of a case, as they were judged. None where no pairs were measured."""
    ways = analysis.case(summary.case.key).ways
    matrix = None if ways is None else pair_matrix(summary)
    if ways is None or matrix is None:
        return None
    return JudgedPairs(
        matrix=matrix,
        slow=frozenset(ways.slow),
        fast_gbyte_per_s=ways.fast_gbyte_per_s,
        words=ways.sentence,
    )


def pair_head(matrix: PairMatrix) -> tuple[str, ...]:
    """`from \\ to, GB/s`, and the places."""
    return (f"from {matrix.place}, {pair_unit(matrix)}", *(f"to {n}" for n in matrix.places))


def pair_rows(pairs: JudgedPairs) -> list[tuple[str, ...]]:
    """One row an origin; slow pairs are marked."""
    places = pairs.matrix.places
    return [
        (str(origin), *(_pair(pairs, (origin, target)) for target in places)) for origin in places
    ]


def _pair(pairs: JudgedPairs, pair: tuple[int, int]) -> str:
    mark = " !" if pair in pairs.slow else ""
    return f"{pair_number(pairs.matrix, pair)}{mark}"


def pair_number(matrix: PairMatrix, pair: tuple[int, int]) -> str:
    """In the matrix's own unit."""
    cell = matrix.cells.get(pair)
    if cell is None:
        return "·"
    factor = {"TB/s": 1e-3, "GB/s": 1.0, "MB/s": 1e3}[pair_unit(matrix)]
    return show_count(cell.rate_gbyte_per_s.value * factor)


def pair_unit(matrix: PairMatrix) -> str:
    """The unit that fits the fastest pair, for all."""
    fastest = max(cell.rate_gbyte_per_s.value for cell in matrix.cells.values())
    return show_bandwidth(fastest).split()[-1]
