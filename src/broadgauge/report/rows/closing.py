"""What does the closing table say? One row a network and shape, for the terminal and the page."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from broadgauge.advise.verdicts.verdict import Verdict
from broadgauge.analysis.model import Analysis
from broadgauge.report.kinds.registry import in_report
from broadgauge.report.words.cells import Cell, estimate_cell
from broadgauge.report.words.cost import days_words, tokens_title, usd_words
from broadgauge.report.words.links import line_rate_cell
from broadgauge.report.words.quantities import column_like, interval, launches_words, show, spread
from broadgauge.results.cost import NO_COST, CaseCost, RunCost
from broadgauge.results.model import CaseSummary, RunSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkRow:
    """A network at a shape: the job on it, and the collectives measured beside the job."""

    job: CaseSummary
    """The training, the user's command, or what only communicates where nothing else ran."""
    collectives: CaseSummary | None
    verdict: Verdict
    cost: CaseCost | None = None
    """None: nothing is known of it."""
    has_company: bool = False
    """Another row is on the same network and shape: the workload's name tells them apart."""

    @property
    def network(self) -> str:
        return self.job.case.network_name

    @property
    def title(self) -> str:
        """`pod-like 2x1`, and the workload where several share the network."""
        case = self.job.case
        workload = f"{case.workload.name} on " if self.has_company else ""
        return f"{workload}{self.network} {case.shape}"

    @property
    def num_failed(self) -> int:
        """Of the job; the collectives beside it have their own place in `show`."""
        return self.job.num_failed


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    title: str
    cell: Callable[[NetworkRow], Cell | None]
    is_price: bool = False
    """It may stand in a table of its own."""
    beside: str | None = None
    """Title of the column of what is below its figures, where the table is wide; empty: nowhere, as
    verdicts tell it. None: it stands in their second line."""
    is_named_below: bool = False
    """What is below all of its figures alike is part of its title, where the table is wide."""


def table_rows(
    run: RunSummary, analysis: Analysis, cost: RunCost = NO_COST
) -> tuple[NetworkRow, ...]:
    """One row for each job at each network and shape, one-node references first.

    The cases of a baseline stand in a table of their own.
    """
    jobs = [s for s in run.candidates if not s.case.workload.only_communicates]
    beside = {id(job): _beside(job, run) for job in jobs}
    taken = {id(found) for found in beside.values()}
    known = {id(job) for job in jobs}
    alone = [s for s in run.candidates if id(s) not in known and id(s) not in taken]
    shown = known | {id(summary) for summary in alone}
    ordered = [summary for summary in by_workload(run) if id(summary) in shown]
    places = Counter(map(_place, ordered))
    has_company = max(places.values(), default=0) > 1
    return tuple(
        NetworkRow(
            job=summary,
            collectives=beside.get(id(summary), summary),
            verdict=analysis.case(summary.case.key).verdict,
            cost=cost.cases.get(summary.case.key),
            has_company=has_company,
        )
        for summary in ordered
    )


def by_workload(run: RunSummary) -> list[CaseSummary]:
    """The experiment's cases, each workload's together, smallest world first."""
    return sorted(
        run.candidates, key=lambda s: (s.case.workload.name, s.case.world_size, s.case.nodes)
    )


def _place(summary: CaseSummary) -> tuple[str, str]:
    return summary.case.network_name, summary.case.shape


def _beside(job: CaseSummary, run: RunSummary) -> CaseSummary | None:
    """The collectives on the same network and shape; those of torch, where several ran them."""
    found = [
        other
        for other in run.same_place(job)
        if other.case.workload.shows_link_rate and other.case.network == job.case.network
    ]
    return min(found, key=lambda other: other.case.workload.measured_by != "torch", default=None)


_OF_JOBS = ("step_time_s", "tokens_per_s", "network_cost_s")


def columns(rows: tuple[NetworkRow, ...]) -> tuple[TableColumn, ...]:
    """The columns that hold anything for these rows, in the table's order; each in one unit."""
    busbw = column_like("busbw_gbyte_per_s", _values(rows, "busbw_gbyte_per_s", of_job=False))
    step, tokens, cost = (column_like(name, _values(rows, name)) for name in _OF_JOBS)
    candidates = (
        TableColumn(title=_name_title(rows), cell=_network, beside=""),
        TableColumn(title="line rate", cell=_line_rate),
        TableColumn(title="busbw", cell=lambda row: _busbw(row, busbw), beside="of line"),
        TableColumn(title="step time", cell=lambda row: _metric(row, "step_time_s", step)),
        TableColumn(title="tokens/s", cell=lambda row: _tokens(row, tokens)),
        TableColumn(title="figure", cell=_figure, beside="metric", is_named_below=True),
        TableColumn(title="scaling", cell=_scaling, beside="per rank of", is_named_below=True),
        TableColumn(
            title="network cost", cell=lambda row: _network_cost(row, cost), beside="of step"
        ),
        TableColumn(title="$/10⁹ tokens", cell=_usd_per_gigatoken, is_price=True, beside="$ a run"),
        TableColumn(title="$ a run", cell=_usd_per_run, is_price=True),
        TableColumn(title=_whole_title(rows), cell=_whole, is_price=True, beside="time"),
    )
    return tuple(c for c in candidates if any(c.cell(row) is not None for row in rows))


def _values(rows: tuple[NetworkRow, ...], name: str, *, of_job: bool = True) -> Iterator[float]:
    for row in rows:
        summary = row.job if of_job else row.collectives
        estimate = None if summary is None else summary.estimates.get(name)
        if estimate is not None:
            yield estimate.value


def _name_title(rows: tuple[NetworkRow, ...]) -> str:
    """What the names in the first column are of: see `Case.network_name`."""
    cases = [row.job.case for row in rows]
    has_storages = any(case.storage is not None for case in cases)
    has_networks = any(case.storage is None or case.network is not None for case in cases)
    if has_storages:
        return "network, storage" if has_networks else "storage"
    return "network"


def _network(row: NetworkRow) -> Cell:
    case = row.job.case
    failed = f"({row.num_failed} failed)" if row.num_failed else ""
    return Cell(main=row.network, sub=f"{case.workload.name} {case.shape}", below=failed)


def _line_rate(row: NetworkRow) -> Cell | None:
    beside = () if row.collectives is None else (row.collectives,)
    return line_rate_cell((row.job, *beside))


def _busbw(row: NetworkRow, like: float | None) -> Cell | None:
    if row.collectives is None:
        return None
    busbw = row.collectives.estimates.get("busbw_gbyte_per_s")
    cell = estimate_cell("busbw_gbyte_per_s", busbw, like)
    share = row.collectives.estimates.get("line_share_ratio")
    if cell is None or share is None:
        return cell
    return Cell(
        main=cell.main,
        sub=cell.sub,
        below=f"{show('line_share_ratio', share.value, 2)} of line",
        detail=f"{cell.detail}; share of the line rate by the link's counters, "
        f"{launches_words(share.launches)}, {interval('line_share_ratio', share)}",
    )


def _metric(row: NetworkRow, name: str, like: float | None) -> Cell | None:
    return estimate_cell(name, row.job.estimates.get(name), like)


def _tokens(row: NetworkRow, like: float | None) -> Cell | None:
    cell = _metric(row, "tokens_per_s", like)
    if cell is None:
        return None
    return Cell(main=cell.main.removesuffix(" /s"), sub=cell.sub, detail=cell.detail)


def _figure(row: NetworkRow) -> Cell | None:
    """What its kind of workload has no column of its own for."""
    return in_report(row.job.case.workload).figure(row.job)


def _scaling(row: NetworkRow) -> Cell | None:
    scaling = row.job.scaling
    if scaling is None:
        return None
    cell = estimate_cell("efficiency_ratio", scaling.efficiency)
    assert cell is not None
    reference = scaling.reference
    return Cell(
        main=cell.main,
        sub=cell.sub,
        below=f"per rank\nof {reference.shape}",
        detail=f"{scaling.metric} a rank over that of {reference.label}; {cell.detail}",
    )


def _network_cost(row: NetworkRow, like: float | None) -> Cell | None:
    cell = _metric(row, "network_cost_s", like)
    share = row.job.value("network_share_ratio")
    if cell is None or share is None or row.job.case.world_size == 1:
        return None
    return Cell(
        main=cell.main,
        sub=cell.sub,
        below=f"{show('network_share_ratio', share, 2)} of step",
        detail=cell.detail,
    )


def _usd_per_gigatoken(row: NetworkRow) -> Cell | None:
    """With what one run costs."""
    cost = row.cost
    cell = None if cost is None else estimate_cell("usd_per_gigatoken", cost.usd_per_gigatoken)
    if cost is None or cell is None or cost.usd_per_run is None or cost.price is None:
        return None
    return Cell(
        main=cell.main,
        sub=cell.sub,
        below=f"{usd_words(cost.usd_per_run.value)} a run",
        detail=f"{cost.price.words}; {cell.detail}",
    )


def _usd_per_run(row: NetworkRow) -> Cell | None:
    """Where no tokens are counted."""
    cost = row.cost
    if cost is None or cost.price is None or cost.usd_per_gigatoken is not None:
        return None
    cell = estimate_cell("usd_per_run", cost.usd_per_run)
    return cell and Cell(main=cell.main, sub=cell.sub, detail=f"{cost.price.words}; {cell.detail}")


def _whole_title(rows: tuple[NetworkRow, ...]) -> str:
    wholes = (row.cost.whole for row in rows if row.cost is not None)
    whole = next((each for each in wholes if each is not None), None)
    return "" if whole is None else tokens_title(whole.tokens)


def _whole(row: NetworkRow) -> Cell | None:
    """Days and dollars of a whole training."""
    whole = None if row.cost is None else row.cost.whole
    if whole is None:
        return None
    days = days_words(whole.time_s.value)
    detail = f"{days}, {whole.time_s.launches} launches"
    if whole.usd is None:
        return Cell(main=days, sub=spread("step_time_s", whole.time_s), detail=detail)
    sub = spread("whole_usd", whole.usd)
    return Cell(main=usd_words(whole.usd.value), sub=sub, below=days, detail=detail)
