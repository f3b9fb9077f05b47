"""What does a run say, once its trials are put together? The types that tables and reports show."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from broadgauge.specs.case import Case
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.plan import Plan
from broadgauge.specs.record import Environment, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveSummary:
    """One collective at one size over all launches of a case."""

    op: str
    dtype: str
    size_bytes: int
    time_s: Estimate
    algbw_gbyte_per_s: Estimate
    busbw_gbyte_per_s: Estimate
    link_rate_gbps: Estimate | None
    amplification_ratio: Estimate | None
    is_correct: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSummary:
    """One case over all its launches."""

    case: Case
    records: tuple[Record, ...]
    """All of them, failed ones included, in the order written."""
    estimates: Mapping[str, Estimate]
    """By metric name, over the trials that ended well."""
    missing: Mapping[str, str]
    """Metrics that are null in every good trial, with the reason."""
    collectives: tuple[CollectiveSummary, ...]
    num_ok: int
    num_failed: int

    def value(self, metric: str) -> float | None:
        """The point estimate of a metric; None where it was not measured."""
        estimate = self.estimates.get(metric)
        return None if estimate is None else estimate.value


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """One run folder, read and put together."""

    folder: Path
    plan: Plan
    experiment_yaml: str
    """The resolved experiment, as stored."""
    records: tuple[Record, ...]
    cases: tuple[CaseSummary, ...]
    """In the plan's order, those without records included."""
    environments: Mapping[str, Environment]
    """By hash."""
    notes: tuple[str, ...]
    """What a reader must know: trials missing, several environments, lines that were cut."""
