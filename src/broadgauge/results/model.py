"""What does a run say, once its trials are put together? The types that tables and reports show."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from broadgauge.results.statistics import PairedComparison
from broadgauge.specs.case import Case, Ranks
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.plan import Plan
from broadgauge.specs.records.record import Environment, Record, Status

STEP_SERIES = "step_time_s"
"""Series of the steps with communication on, slowest rank per step, in the order they ran."""
STEP_OFF_SERIES = "step_without_communication_s"
LOSS_SERIES = "loss"
"""Loss of the steps of STEP_SERIES, one for one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveSummary:
    """One collective at one size over all launches of a case."""

    op: str
    dtype: str
    size_bytes: int
    engine: str
    """Who ran it: torch or nccl-tests."""
    time_s: Estimate
    algbw_gbyte_per_s: Estimate
    busbw_gbyte_per_s: Estimate
    link_rate_gbps: Estimate | None
    amplification_ratio: Estimate | None
    is_correct: bool | None
    """False if any trial was wrong; None where it was not checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairSummary:
    """Messages of one size from one rank to another, while all others wait."""

    from_rank: int
    to_rank: int
    dtype: str
    size_bytes: int
    time_s: Estimate
    rate_gbyte_per_s: Estimate
    """Bytes of the message over its median time: one hiccup is not a slow cable."""
    link_rate_gbps: Estimate | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """How does a case do against the smallest shape of the same workload?"""

    reference: Case
    metric: str
    """`tokens_per_s`, or `samples_per_s` where there are no tokens."""
    efficiency: Estimate
    """Of the metric per rank: here over the smallest shape, paired by block; 1 is ideal."""
    speedup: Estimate
    """Of the metric of all ranks: here over the smallest shape."""
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """The run stood still: it was interrupted, and resumed."""

    from_unix_s: float
    until_unix_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSummary:
    """One case over all its launches."""

    case: Case
    records: tuple[Record, ...]
    """All of them, failed ones included, in the order written."""
    estimates: Mapping[str, Estimate]
    """By metric name, over the trials that succeeded."""
    missing: Mapping[str, str]
    """Metrics that are null in every good trial, with the reason."""
    collectives: tuple[CollectiveSummary, ...]
    """By engine, op, dtype and size."""
    pairs: tuple[PairSummary, ...]
    """By ranks, dtype and size; empty unless the workload is `pairwise`."""
    num_ok: int
    num_failed: int
    """Failed and timed out; trials that were skipped count in neither."""
    num_planned: int
    ceiling_gbps: Estimate | None = None
    """What one plain TCP stream carries at least over the same link unshaped, on the wire."""
    eight_streams_gbps: Estimate | None = None
    """Eight at once, over all NICs of a node."""
    round_trip_s: Estimate | None = None
    scaling: Scaling | None = None
    """None: it is the smallest shape itself, or there is nothing to compare."""
    pauses: tuple[Pause, ...] = ()
    """Of the whole run: what ran before one and what ran after it are no pair."""

    good: tuple[Record, ...] = field(init=False, repr=False, compare=False)
    """The trials that succeeded."""

    def __post_init__(self) -> None:
        good = tuple(record for record in self.records if record.status is Status.OK)
        object.__setattr__(self, "good", good)

    def value(self, metric: str) -> float | None:
        """The point estimate of a metric; None where it was not measured."""
        estimate = self.estimates.get(metric)
        return None if estimate is None else estimate.value


_Groups = Mapping[tuple[str, Ranks], tuple[CaseSummary, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _CaseIndex:
    """Each case asks for its peers: with hundreds of cases, each may look at its peers only."""

    by_key: Mapping[str, CaseSummary]
    by_work: _Groups
    """By the workload's name and the ranks."""
    by_place: _Groups
    """By the network's name and the ranks."""
    fastest: Mapping[tuple[str, Ranks], CaseSummary]
    """Of each of `by_work` that on the fastest network."""


def _index_of(cases: tuple[CaseSummary, ...]) -> _CaseIndex:
    def groups(name_of: Callable[[Case], str]) -> _Groups:
        found: dict[tuple[str, Ranks], list[CaseSummary]] = {}
        for summary in cases:
            place = (name_of(summary.case), summary.case.ranks)
            found.setdefault(place, []).append(summary)
        return {place: tuple(of) for place, of in found.items()}

    by_work = groups(lambda case: case.workload.name)
    on_networks = (
        (work, [each for each in of if each.case.has_network]) for work, of in by_work.items()
    )
    return _CaseIndex(
        by_key={summary.case.key: summary for summary in reversed(cases)},
        by_work=by_work,
        by_place=groups(lambda case: case.plain_network_name),
        fastest={work: max(of, key=_line_rate) for work, of in on_networks if of},
    )


def _line_rate(summary: CaseSummary) -> float:
    """Of all NICs of a node; a network without a rate of ours is taken for the fastest."""
    network = summary.case.link
    rate_gbps = None if network is None else network.node_rate_gbps
    return float("inf") if rate_gbps is None else rate_gbps


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
    _index: _CaseIndex = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_index", _index_of(self.cases))

    @property
    def candidates(self) -> tuple[CaseSummary, ...]:
        """The cases of this experiment, without those of a baseline beside it."""
        return tuple(summary for summary in self.cases if summary.case.arm == "candidate")

    def case(self, key: str) -> CaseSummary | None:
        """The case with this key; None where the run has none."""
        return self._index.by_key.get(key)

    def same_work(self, summary: CaseSummary) -> tuple[CaseSummary, ...]:
        """This case and those that differ from it in their network only, in the plan's order."""
        return self._index.by_work.get((summary.case.workload.name, summary.case.ranks), ())

    def fastest_of(self, summary: CaseSummary) -> CaseSummary | None:
        """Of `same_work` that on the fastest network; None: it has none between nodes.

        Of networks that were found, and of what was imported, no rate is known: the first named.
        """
        return self._index.fastest.get((summary.case.workload.name, summary.case.ranks))

    def same_place(self, summary: CaseSummary) -> tuple[CaseSummary, ...]:
        """This case and those that differ from it in their workload only, in the plan's order."""
        return self._index.by_place.get((summary.case.plain_network_name, summary.case.ranks), ())


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeRatio:
    """A collective's busbw at one size, B's over A's, of the means over launches."""

    engine: str
    """Who measured it."""
    op: str
    dtype: str
    size_bytes: int
    busbw_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseComparison:
    """One metric of two cases, or of one case in two runs."""

    a_label: str
    b_label: str
    metric: str
    direction: str
    """`lower`, `higher` or `neither` is better."""
    a: Estimate
    b: Estimate
    comparison: PairedComparison | None
    """None where no ratio can be had, with the reason in `notes`."""
    is_paired: bool
    notes: tuple[str, ...] = ()
    by_size: tuple[SizeRatio, ...] = ()
    """Of collectives at several sizes: `metric` is the largest's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunComparison:
    """Two runs, case by case."""

    a: RunSummary
    b: RunSummary
    rows: tuple[CaseComparison, ...]
    only_in_a: tuple[str, ...]
    """Labels of the cases that B has not."""
    only_in_b: tuple[str, ...]
    setting_differences: Mapping[str, tuple[str, ...]]
    """By A's label: `workload.batch_per_rank: 4 in A, 8 in B`, of cases that were changed."""
    environment_differences: tuple[str, ...]
    """`torch: 2.11.0 in A, 2.10.0 in B`."""
    notes: tuple[str, ...]
