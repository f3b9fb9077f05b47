"""Does it matter how the ranks are spread over nodes? Equal world sizes side by side."""

from dataclasses import dataclass

from broadgauge.results.comparing.compare_cases import compare_cases, headline_metrics
from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.specs.estimate import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedCase:
    """One case, and what it is of the row's first."""

    summary: CaseSummary
    figure: Estimate
    over_first: Estimate | None
    """By interleaved pairs; None for the first itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementRow:
    network: str
    cells: tuple[PlacedCase | None, ...]
    """One a shape, in the order of `Placement.shapes`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """One workload at one world size on several shapes."""

    workload: str
    world_size: int
    metric: str
    shapes: tuple[str, ...]
    """Fewest nodes first."""
    rows: tuple[PlacementRow, ...]


def placements(run: RunSummary) -> tuple[Placement, ...]:
    """Every workload and world size that ran on more than one shape."""
    groups: dict[tuple[str, int, str, str | None], list[CaseSummary]] = {}
    for summary in run.candidates:
        case = summary.case
        if summary.num_ok:
            key = (case.workload.name, case.world_size, case.backend, case.platform)
            groups.setdefault(key, []).append(summary)
    found = (_placement(summaries) for summaries in groups.values())
    return tuple(placement for placement in found if placement is not None)


def _placement(summaries: list[CaseSummary]) -> Placement | None:
    metric = next(iter(headline_metrics(summaries[0])), None)
    measured = [s for s in summaries if metric is not None and metric in s.estimates]
    by_nodes = sorted(measured, key=lambda s: s.case.nodes)
    shapes = tuple(dict.fromkeys(summary.case.shape for summary in by_nodes))
    if metric is None or len(shapes) < 2:
        return None
    inside = [summary for summary in by_nodes if summary.case.link is None]
    networks = dict.fromkeys(s.case.network_name for s in by_nodes if s.case.link is not None)
    rows = [
        _row(
            name,
            shapes,
            [*inside[: len(inside) == 1], *(s for s in by_nodes if s.case.network_name == name)],
            metric,
        )
        for name in networks
    ]
    if len(inside) > 1:
        rows = [*(_row(s.case.network_name, shapes, [s], metric) for s in inside), *rows]
    return Placement(
        workload=by_nodes[0].case.workload.name,
        world_size=by_nodes[0].case.world_size,
        metric=metric,
        shapes=shapes,
        rows=tuple(rows),
    )


def _row(
    network: str, shapes: tuple[str, ...], summaries: list[CaseSummary], metric: str
) -> PlacementRow:
    cells: list[PlacedCase | None] = []
    for shape in shapes:
        summary = next((s for s in summaries if s.case.shape == shape), None)
        cells.append(None if summary is None else _placed(summary, summaries[0], metric))
    return PlacementRow(network=network, cells=tuple(cells))


def _placed(summary: CaseSummary, first: CaseSummary, metric: str) -> PlacedCase:
    row = None if summary is first else compare_cases(first, summary, metric)
    comparison = None if row is None or not row.is_paired else row.comparison
    return PlacedCase(
        summary=summary,
        figure=summary.estimates[metric],
        over_first=None if comparison is None else comparison.ratio,
    )
