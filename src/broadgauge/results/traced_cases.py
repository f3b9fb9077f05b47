"""Which trial's traces speak for a case? One whose parts add up, rather than a mean of several."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.specs.record import Record
from broadgauge.specs.traced_steps import TracedSteps


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedCase:
    """A case with traced steps, by the trial whose traced step is the median of its trials'."""

    summary: CaseSummary
    record: Record
    traced: TracedSteps
    step_time_s: float
    shortest_step_s: float
    longest_step_s: float
    """Of the traced trials, as the one before."""
    num_trials: int
    num_missing: int
    """Trials that should have been traced and say why they were not."""

    @property
    def utilization_ratio(self) -> float | None:
        """NVML's, the mean over GPUs; None: no GPU, or it was not told."""
        told = [gpu.utilization_ratio for gpu in self.record.gpus]
        known = [each for each in told if each is not None]
        return fmean(known) if known and len(known) == len(told) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class UntracedCase:
    """A case whose steps should have been traced, and none was."""

    summary: CaseSummary
    problem: str


def traced_cases(run: RunSummary) -> tuple[TracedCase, ...]:
    """In the plan's order."""
    found = (traced_case(summary) for summary in run.cases)
    return tuple(case for case in found if case is not None)


def traced_case(summary: CaseSummary) -> TracedCase | None:
    """None: none of its trials has what its traces say."""
    asked = [(record, record.traced) for record in summary.good if record.traced is not None]
    told = [
        (traced.step_time_s, record, traced)
        for record, traced in asked
        if traced.step_time_s is not None
    ]
    if not told:
        return None
    told.sort(key=lambda each: each[0])
    step_s, record, traced = told[(len(told) - 1) // 2]
    return TracedCase(
        summary=summary,
        record=record,
        traced=traced,
        step_time_s=step_s,
        shortest_step_s=told[0][0],
        longest_step_s=told[-1][0],
        num_trials=len(told),
        num_missing=len(asked) - len(told),
    )


def untraced_cases(run: RunSummary) -> tuple[UntracedCase, ...]:
    """Each with its first trial's reason."""
    return tuple(
        UntracedCase(summary=summary, problem=problem)
        for summary in run.cases
        if traced_case(summary) is None and (problem := _problem(summary.good)) is not None
    )


def _problem(records: Sequence[Record]) -> str | None:
    told = (record.traced.problem for record in records if record.traced is not None)
    return next((problem for problem in told if problem is not None), None)
