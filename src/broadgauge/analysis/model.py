"""What does a run mean, once it is judged? The types of analysis.json, and of all that shows it.

Facts, codes and the one sentence of each verdict; how they are worded further is the report's.
Nothing here holds what the records hold, except figures that a judgement is of.
"""

from dataclasses import dataclass
from functools import cached_property

from broadgauge import __version__
from broadgauge.advise.verdicts.verdict import Verdict
from broadgauge.results.comparing.gate import Gate
from broadgauge.results.comparing.hypotheses import HypothesisVerdict
from broadgauge.results.cost import NO_COST, RunCost
from broadgauge.results.model import RunSummary
from broadgauge.results.statistics import ComparisonVerdict
from broadgauge.specs.base import StoredModel
from broadgauge.specs.case import Arm
from broadgauge.specs.estimate import Estimate
from broadgauge.specs.hypothesis import Hypothesis, PublishedFigure
from broadgauge.specs.records.nccl import NcclUse
from broadgauge.specs.records.record import Confidence, Severity

ANALYSIS_VERSION = 9
"""Changes with every rule, threshold or sentence that changes what is said of the same records, so
that what was stored before is made again (tests/analysis/test_golden.py holds that)."""


class MadeFrom(StoredModel):
    """The bytes that were judged, and by what: another of these, and the analysis is stale."""

    broadgauge: str = __version__
    analysis_version: int = ANALYSIS_VERSION
    plan_sha256: str
    records_sha256: str
    """Of the whole lines of records.jsonl."""


class JudgedWays(StoredModel):
    """Messages between pairs of nodes, or of ranks on one node: is one of them slow?"""

    slow: tuple[tuple[int, int], ...]
    """Origin and target, numbered as `place` says."""
    place: str
    """`node` or `rank`."""
    fast_gbyte_per_s: float
    """Rate of the median fast pair: what slow ones are compared with."""
    sentence: str


class PathTaken(StoredModel):
    """Which way the bytes inside a node really took."""

    asked: str | None
    """None: the experiment names no path."""
    used: tuple[str, ...]
    """More than one where trials differ."""
    channels: tuple[int, ...]
    """Their numbers in the trials, each once, fewest first."""
    evidence: str | None
    """A line of the library's log."""


class NcclTaken(StoredModel):
    """What NCCL did, by its own logs."""

    use: NcclUse
    """Of the case's last good trial; where none is good, of its last."""
    other_trials: tuple[str, ...] = ()
    """What was otherwise in other trials, in words: `network Socket in 1 of 5 trials`."""


class JudgedCase(StoredModel):
    """One case of the plan."""

    key: str
    label: str
    arm: Arm
    verdict: Verdict
    headline: dict[str, Estimate]
    """The figures that say how fast it is, by metric."""
    ways: JudgedWays | None = None
    """None: no pairs were measured."""
    path: PathTaken | None = None
    """None: nobody looked."""
    nccl: NcclTaken | None = None
    """None: no trial has anything of it."""


class FindingGroup(StoredModel):
    """The findings of one rule that differ in nothing but numbers; or one of several cases."""

    rule: str
    severity: Severity
    symptom: str
    """With the range of each number."""
    evidence: tuple[str, ...]
    """Of the first, where the symptom holds no range."""
    cause: str | None
    """As the first has it."""
    fix: str | None
    confidence: Confidence | None = None
    """Of the cause; None: a measurement, or an older run."""
    cases: tuple[str, ...]
    """Their labels."""
    num_trials: int


class JudgedRatio(StoredModel):
    """One metric of B over that of A, both of this run."""

    a: str
    """Label of the case compared with: the fastest network, or the baseline."""
    b: str
    metric: str
    direction: str
    """`lower`, `higher` or `neither` is better."""
    a_figure: Estimate
    b_figure: Estimate
    ratio: Estimate | None
    """None: none can be had, with the reason in `notes`."""
    verdict: ComparisonVerdict | None
    p_value: float | None
    is_paired: bool
    notes: tuple[str, ...]


class JudgedAnswer(StoredModel):
    """What one case says of a hypothesis."""

    case: str
    """Its label."""
    against: str | None
    """Label of the case that it is compared with; None: a value, or no partner was found."""
    estimate: Estimate | None
    verdict: HypothesisVerdict
    reason: str


class JudgedHypothesis(StoredModel):
    """What all its cases say of a hypothesis."""

    hypothesis: Hypothesis
    verdict: HypothesisVerdict
    reason: str
    answers: tuple[JudgedAnswer, ...]
    caveats: tuple[str, ...]


class JudgedPublished(StoredModel):
    """A published figure beside ours."""

    figure: PublishedFigure
    case: str | None
    """Label of the case that stands for it."""
    ours: Estimate | None
    reason: str
    """Why ours is missing; empty where it is there."""
    ours_over_theirs: Estimate | None
    first: str | None
    """Label of the first figure of the same metric; None: this is it, or there is no other."""
    theirs_over_first_ratio: float | None
    ours_over_first: Estimate | None


class Analysis(StoredModel):
    """Everything that is judged of a run."""

    made_from: MadeFrom | None
    """None: of records that no folder holds."""
    experiment_name: str
    shared_cores: str | None
    """What other programs and machines took of the cores, where any good trial shared them."""
    notes: tuple[str, ...]
    cases: tuple[JudgedCase, ...]
    """In the plan's order."""
    findings: tuple[FindingGroup, ...]
    networks: tuple[JudgedRatio, ...]
    """Each network (B) over the fastest (A)."""
    platforms: tuple[JudgedRatio, ...]
    """Each case on a platform (B) over the same on the run's first (A)."""
    hypotheses: tuple[JudgedHypothesis, ...]
    published: tuple[JudgedPublished, ...]
    arms: tuple[JudgedRatio, ...]
    """The experiment (B) over its baseline (A); empty where it has none."""
    gate: Gate | None
    """None: the run was started without a limit."""

    def case(self, key: str) -> JudgedCase:
        """The case with this key, which is one of the plan's."""
        return self._by_key[key]

    @cached_property
    def _by_key(self) -> dict[str, JudgedCase]:
        return {case.key: case for case in self.cases}


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysedRun:
    """A run's figures, and what they mean: what every view is of."""

    run: RunSummary
    analysis: Analysis
    cost: RunCost = NO_COST
    """In dollars; never stored, as prices are of the day of looking."""
