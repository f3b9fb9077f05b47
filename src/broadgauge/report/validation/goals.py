"""Which goals are reached? Each with its figure, also where it is not yet reached."""

from collections.abc import Iterator
from dataclasses import dataclass

from broadgauge.predict.scoring.scoring import Scored, Scores
from broadgauge.predict.scoring.validation import Validation, score_sheet
from broadgauge.report.validation.terminal import percent

SINGLE_NODE = "vTrain ground truth (single node, DP only)"


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedSheets:
    """The same table, calibrated in three ways."""

    plain: Validation
    few: Validation
    six: Validation


def goal_rows(sheets: CalibratedSheets) -> list[tuple[str, ...]]:
    """Number, goal, where we are, and whether that is enough."""
    return [
        (number, words, here, "reached" if is_reached else "**not yet**")
        for number, words, here, is_reached in _goals(sheets)
    ]


def _goals(sheets: CalibratedSheets) -> Iterator[tuple[str, str, str, bool]]:
    plain, few = score_sheet(sheets.plain.scored), score_sheet(sheets.few.scored)
    mean = plain.mean_over_sources
    yield _within("1", "nothing calibrated: MAPE over rows", plain.overall.mape, 0.14)
    yield _within("1", "nothing calibrated: MAPE, mean over sources", mean.mape, 0.18)
    yield _within("2", "at most 3 rows per system and network: MAPE", few.overall.mape, 0.08)
    yield _within("2", "the same: median", few.overall.median_ape, 0.045)
    yield _within("2", "the same: P90", few.overall.p90_ape, 0.2)
    yield _within(
        "3",
        "the same: network rate measured by the source, MAPE",
        _of(row for row in sheets.few.scored if _has_measured_network(row)).mape,
        0.05,
    )
    yield _within(
        "4",
        "vTrain, single node, at most 6 rows: MAPE",
        _of(row for row in sheets.six.scored if row.row.source == SINGLE_NODE).mape,
        0.07,
    )
    scaling = plain.overall.scaling_efficiency_error
    yield (
        "5",
        "scaling efficiency: mean error ≤ 0.04",
        "–" if scaling is None else f"{scaling:.3f}",
        scaling is not None and scaling <= 0.04,
    )
    covered = plain.overall.interval_coverage or 0.0
    yield (
        "6",
        "80 % interval holds 75 to 88 % of rows",
        percent(covered),
        0.75 <= covered <= 0.88,
    )
    worst = min(plain.by_source.items(), key=lambda item: item[1].interval_coverage or 0.0)
    least = worst[1].interval_coverage or 0.0
    yield "6", "and ≥ 60 % within every source", f"{percent(least)} ({worst[0]})", least >= 0.6
    order = plain.overall.pair_order or 0.0
    yield "7", "faster of two settings named in ≥ 90 %", percent(order), order >= 0.9


def _within(
    number: str, words: str, figure: float | None, limit: float
) -> tuple[str, str, str, bool]:
    is_reached = figure is not None and figure <= limit
    return number, f"{words} ≤ {limit * 100:g}", percent(figure), is_reached


def _of(rows: Iterator[Scored]) -> Scores:
    return score_sheet(list(rows)).overall


def _has_measured_network(each: Scored) -> bool:
    return each.row.case.fabric.measured_node_gbyte_per_s is not None
