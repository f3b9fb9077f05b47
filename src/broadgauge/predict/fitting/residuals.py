"""By how much do predictions miss sources that constants had not seen? Quantiles, by regime.

The spread between sources counts more than how many rows one of them has.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from broadgauge.predict.costs.compute import compute_costs
from broadgauge.predict.facts.arrays import Times
from broadgauge.predict.facts.columns import columns_of
from broadgauge.predict.facts.knowledge import Knowledge
from broadgauge.predict.fitting.sample import Sample
from broadgauge.predict.intervals.uncertainty import WORDS, Regimes, families_of, regimes_of
from broadgauge.predict.timeline.evaluation import evaluate

LEAST_ROWS = 8
"""Of a regime, from two sources: with fewer its quantiles are those of a wider one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """Residuals of a source whose rows the constants were not fitted on."""

    source: str
    log_ratios: Times
    """Measured over predicted."""
    regimes: Regimes
    families: Regimes

    @classmethod
    def of(cls, sample: Sample, source: str, knowledge: Knowledge) -> "HeldOut":
        """Rows that fits use, predicted with this."""
        mask = sample.of(source) & sample.is_used
        cases = [case for case, mine in zip(sample.columns.cases, mask, strict=True) if mine]
        columns = columns_of(cases, knowledge)
        compute = compute_costs(columns, knowledge)
        evaluation = evaluate(columns, compute)
        return cls(
            source=source,
            log_ratios=np.log(sample.measured_s[mask] / evaluation.step_s),
            regimes=regimes_of(columns, compute, evaluation),
            families=families_of(columns),
        )


def residual_table(left_out: Sequence[HeldOut]) -> dict[str, tuple[float, float]]:
    """Quantiles of each regime, and of all: `regime` → 10 % and 90 %."""
    logs = np.concatenate([each.log_ratios for each in left_out])
    names = np.concatenate([each.regimes for each in left_out])
    sources = np.concatenate([[each.source] * len(each.log_ratios) for each in left_out])
    families = np.concatenate([each.families for each in left_out])
    table = {"all": _quantiles(logs, sources)}
    masks = {name: names == name for name in WORDS}
    for family in sorted(set(families.tolist())):
        masks[family] = families == family
        masks |= {f"{name}-{family}": (names == name) & (families == family) for name in WORDS}
    for name, mask in masks.items():
        if mask.sum() >= LEAST_ROWS and len(set(sources[mask].tolist())) > 1:
            table[name] = _quantiles(logs[mask], sources[mask])
    return table


def _quantiles(logs: Times, sources: npt.NDArray[np.str_]) -> tuple[float, float]:
    """10 % and 90 %."""
    low, high = weighted_quantiles(logs, sources, (0.1, 0.9))
    return low, high


def weighted_quantiles(
    values: Times, sources: npt.NDArray[np.str_], shares: Sequence[float]
) -> tuple[float, ...]:
    """A source of n rows counting as √n."""
    counts = {name: int((sources == name).sum()) for name in set(sources.tolist())}
    weights = np.array([1 / np.sqrt(counts[name]) for name in sources.tolist()])
    order = np.argsort(values)
    places = (np.cumsum(weights[order]) - weights[order] / 2) / weights.sum()
    return tuple(np.interp(shares, places, values[order]).tolist())
