"""How good were predictions of rows whose step time is known?

Errors are ratios: predicted / measured − 1. A mean over rows is dominated by sources with many
rows, so the mean over sources stands beside it.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import combinations

from broadgauge.predict.case import Fabric, TrainingCase
from broadgauge.predict.prediction import Interval
from broadgauge.predict.table import Row

CLEAR_DIFFERENCE_RATIO = 1.1
"""Two settings that differ by less are within what repeating one of them spreads (x1.06)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A row and what was predicted for it."""

    row: Row
    step_time_s: Interval

    @property
    def error_ratio(self) -> float:
        """Predicted over measured, minus one."""
        return self.step_time_s.value / self.row.step_time_s - 1

    @property
    def is_covered(self) -> bool:
        """Does the interval hold the measured time?"""
        return self.step_time_s.low <= self.row.step_time_s <= self.step_time_s.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """The figures of one set of rows; all but `n` are ratios. None: there was nothing to count."""

    n: int
    """Rows; of a mean over sources, sources."""
    mape: float | None = None
    """Mean absolute error."""
    median_ape: float | None = None
    p90_ape: float | None = None
    worst_ape: float | None = None
    bias: float | None = None
    """Mean signed error: more than zero is predicted too slow."""
    interval_coverage: float | None = None
    pair_order: float | None = None
    """Share of clearly different pairs of settings of which the faster one was named."""
    scaling_efficiency_error: float | None = None
    """Mean absolute error of the efficiency when nodes are added."""


def scores(scored: Sequence[Scored]) -> Scores:
    """All figures of these rows; of no rows, none."""
    if not scored:
        return Scores(n=0)
    errors = sorted(abs(each.error_ratio) for each in scored)
    return Scores(
        n=len(scored),
        mape=math.fsum(errors) / len(errors),
        median_ape=quantile(errors, 0.5),
        p90_ape=quantile(errors, 0.9),
        worst_ape=errors[-1],
        bias=math.fsum(each.error_ratio for each in scored) / len(scored),
        interval_coverage=sum(each.is_covered for each in scored) / len(scored),
        pair_order=_mean([float(is_right) for is_right in _named_pairs(scored)]),
        scaling_efficiency_error=_mean(list(_scaling_errors(scored))),
    )


def scores_by_source(scored: Sequence[Scored]) -> dict[str, Scores]:
    """The figures of each source, in the order of their names."""
    sources = sorted({each.row.source for each in scored})
    return {
        source: scores([each for each in scored if each.row.source == source]) for source in sources
    }


def mean_over_sources(by_source: Mapping[str, Scores]) -> Scores:
    """Each figure's plain mean over the sources that have it; `n` counts the sources."""

    def mean(name: str) -> float | None:
        values = [getattr(each, name) for each in by_source.values()]
        return _mean([value for value in values if value is not None])

    means = {field.name: mean(field.name) for field in fields(Scores) if field.name != "n"}
    return Scores(n=len(by_source), **means)


def quantile(ascending: Sequence[float], share: float) -> float:
    """Linear between the two nearest order statistics (Hyndman and Fan 1996, definition 7)."""
    place = share * (len(ascending) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ascending) - 1)
    return ascending[below] + (place - below) * (ascending[above] - ascending[below])


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _s_per_token(step_time_s: float, case: TrainingCase) -> float:
    return step_time_s / (case.global_batch * case.seq_len)


def _named_pairs(scored: Sequence[Scored]) -> Iterator[bool]:
    """Of each pair of settings: was the faster one named?

    A pair is two different settings of one source for the same model on as many of the same GPUs,
    whose measured times a token differ by more than 10 %. Equal predictions name nobody.
    """
    groups: dict[tuple[object, ...], list[Scored]] = {}
    for each in scored:
        case = each.row.case
        model = (case.model.name, case.model.layers, case.model.hidden)
        key = (each.row.source, model, case.gpu, case.gpus)
        groups.setdefault(key, []).append(each)
    for group in groups.values():
        for one, other in combinations(group, 2):
            if replace(one.row.case, name="") == replace(other.row.case, name=""):
                continue  # one setting measured twice
            measured = _s_per_token(one.row.step_time_s, one.row.case) / _s_per_token(
                other.row.step_time_s, other.row.case
            )
            if max(measured, 1 / measured) <= CLEAR_DIFFERENCE_RATIO:
                continue
            predicted = _s_per_token(one.step_time_s.value, one.row.case) / _s_per_token(
                other.step_time_s.value, other.row.case
            )
            yield (measured > 1 and predicted > 1) or (measured < 1 and predicted < 1)


def _scaling_errors(scored: Sequence[Scored]) -> Iterator[float]:
    """Predicted minus measured efficiency, for each row of a series but its smallest."""
    seen: set[tuple[int, int]] = set()
    for series in _series(scored):
        fewest = min(each.row.case.nodes for each in series)
        base = next(each for each in series if each.row.case.nodes == fewest)
        for each in series:
            pair = (base.row.line, each.row.line)
            if each.row.case.nodes == fewest or pair in seen:
                continue
            seen.add(pair)
            yield abs(_efficiency_ratio(each, base, is_measured=False)
                      - _efficiency_ratio(each, base, is_measured=True))  # fmt: skip


def _efficiency_ratio(each: Scored, base: Scored, *, is_measured: bool) -> float:
    """Tokens a second and GPU, over those of the base."""

    def gpu_s_per_token(one: Scored) -> float:
        time_s = one.row.step_time_s if is_measured else one.step_time_s.value
        return _s_per_token(time_s, one.row.case) * one.row.case.gpus

    return gpu_s_per_token(base) / gpu_s_per_token(each)


def _series(scored: Sequence[Scored]) -> Iterator[list[Scored]]:
    """Rows of one source and configuration that differ in the number of nodes.

    Either each GPU keeps its batch and accumulation, or the step keeps its global batch; rows of
    several nodes share their network, and one node's rows begin each series.
    """
    for is_weak in (True, False):
        groups: dict[tuple[object, ...], list[Scored]] = {}
        for each in scored:
            case = each.row.case
            batch = case.micro_batches if is_weak else case.global_batch
            unscaled = replace(
                case, name="", nodes=1, data_parallel=1, global_batch=1.0, fabric=Fabric()
            )
            groups.setdefault((each.row.source, is_weak, batch, unscaled), []).append(each)
        for group in groups.values():
            single = [each for each in group if each.row.case.nodes == 1]
            fabrics = {each.row.case.fabric: None for each in group if each.row.case.nodes > 1}
            for fabric in fabrics:
                yield single + [
                    each
                    for each in group
                    if each.row.case.nodes > 1 and each.row.case.fabric == fabric
                ]
