"""Which trial's time to completion speaks for a case? One whose parts add up, the median."""

from dataclasses import dataclass

from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.specs.completion import Completion
from broadgauge.specs.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedCase:
    """A case by the trial whose whole training takes the median time of its trials'."""

    summary: CaseSummary
    record: Record
    completion: Completion
    shortest_s: float
    longest_s: float
    """Of its trials, as the whole."""
    num_trials: int


def completed_cases(run: RunSummary) -> tuple[CompletedCase, ...]:
    """In the plan's order."""
    found = (completed_case(summary) for summary in run.cases)
    return tuple(case for case in found if case is not None)


def completed_case(summary: CaseSummary) -> CompletedCase | None:
    """None: none of its trials tells what a whole training takes."""
    told = [
        (record.completion.total_s, record, record.completion)
        for record in summary.good
        if record.completion is not None
    ]
    if not told:
        return None
    told.sort(key=lambda each: each[0])
    _, record, completion = told[(len(told) - 1) // 2]
    return CompletedCase(
        summary=summary,
        record=record,
        completion=completion,
        shortest_s=told[0][0],
        longest_s=told[-1][0],
        num_trials=len(told),
    )
