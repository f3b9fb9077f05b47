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
from broadgauge.predict.tables.table import StepRow

CLEAR_DIFFERENCE_RATIO = 1.1
"""Two settings that differ by less are within what repeating one of them spreads (x1.06)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A row and what was predicted for it."""

    row: StepRow
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
    settings = _settings(scored)
    return Scores(
        n=len(scored),
        mape=math.fsum(errors) / len(errors),
        median_ape=quantile(errors, 0.5),
        p90_ape=quantile(errors, 0.9),
        worst_ape=errors[-1],
        bias=math.fsum(each.error_ratio for each in scored) / len(scored),
        interval_coverage=sum(each.is_covered for each in scored) / len(scored),
        pair_order=_mean([float(is_right) for is_right in _named_pairs(settings)]),
        scaling_efficiency_error=_mean(list(_scaling_errors(settings))),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setting:
    """One configuration of one source; repeats of it are taken together."""

    source: str
    case: TrainingCase
    measured_s: float
    """Geometric mean over its repeats."""
    predicted_s: float

    def s_per_token(self, *, is_measured: bool) -> float:
        """Of the whole cluster: steps of different batches can be compared so."""
        step_s = self.measured_s if is_measured else self.predicted_s
        return step_s / (self.case.global_batch * self.case.seq_len)


def _settings(scored: Sequence[Scored]) -> list[_Setting]:
    """In the order of the table."""
    repeats: dict[tuple[str, TrainingCase], list[Scored]] = {}
    for each in scored:
        key = (each.row.source, replace(each.row.case, name=""))
        repeats.setdefault(key, []).append(each)
    return [
        _Setting(
            source=source,
            case=case,
            measured_s=_geometric_mean([each.row.step_time_s for each in group]),
            predicted_s=_geometric_mean([each.step_time_s.value for each in group]),
        )
        for (source, case), group in repeats.items()
    ]


def _geometric_mean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def _named_pairs(settings: Sequence[_Setting]) -> Iterator[bool]:
    """Of each pair of settings: was the faster one named?

    A pair is two different settings of one source for the same model on as many of the same GPUs,
    whose measured times a token differ by more than 10 %. Equal predictions name nobody.
    """
    groups: dict[tuple[object, ...], list[_Setting]] = {}
    for each in settings:
        model = (each.case.model.name, each.case.model.layers, each.case.model.hidden)
        groups.setdefault((each.source, model, each.case.gpu, each.case.gpus), []).append(each)
    for group in groups.values():
        for one, other in combinations(group, 2):
            measured = one.s_per_token(is_measured=True) / other.s_per_token(is_measured=True)
            if max(measured, 1 / measured) <= CLEAR_DIFFERENCE_RATIO:
                continue
            predicted = one.s_per_token(is_measured=False) / other.s_per_token(is_measured=False)
            yield (measured > 1 and predicted > 1) or (measured < 1 and predicted < 1)


def _scaling_errors(settings: Sequence[_Setting]) -> Iterator[float]:
    """Predicted minus measured efficiency, for each setting of a series but its smallest."""
    seen: set[tuple[_Setting, _Setting]] = set()
    for series in _series(settings):
        fewest = min(each.case.nodes for each in series)
        base = next(each for each in series if each.case.nodes == fewest)
        for each in series:
            if each.case.nodes == fewest or (base, each) in seen:
                continue
            seen.add((base, each))
            yield abs(
                _efficiency_ratio(each, base, is_measured=False)
                - _efficiency_ratio(each, base, is_measured=True)
            )


def _efficiency_ratio(each: _Setting, base: _Setting, *, is_measured: bool) -> float:
    """Tokens a second and GPU, over those of the base."""
    slower = each.s_per_token(is_measured=is_measured) * each.case.gpus
    return base.s_per_token(is_measured=is_measured) * base.case.gpus / slower


def _series(settings: Sequence[_Setting]) -> Iterator[list[_Setting]]:
    """Settings of one source and configuration that differ in the number of nodes.

    Either each GPU keeps its batch and accumulation, or the step keeps its global batch; those of
    several nodes share their network, and one node begins each series.
    """
    for is_weak in (True, False):
        groups: dict[tuple[object, ...], list[_Setting]] = {}
        for each in settings:
            case = each.case
            batch = case.micro_batches if is_weak else case.global_batch
            unscaled = replace(
                case,
                nodes=1,
                data_parallel=1,
                global_batch=1.0,
                fabric=Fabric(),
                recomputed_ratio=0.0,
            )
            groups.setdefault((each.source, is_weak, batch, unscaled), []).append(each)
        for group in groups.values():
            single = [each for each in group if each.case.nodes == 1]
            several = [each for each in group if each.case.nodes > 1]
            for fabric in {each.case.fabric: None for each in several}:
                yield single + [each for each in several if each.case.fabric == fabric]
