"""Where did the time of a run's traced steps go? Its traces read again, case by case."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from broadgauge.results.measured_beside import (
    NOTHING_BESIDE,
    MeasuredBeside,
    ProbedPath,
    communication_off,
    probed_path,
)
from broadgauge.results.model import CaseSummary
from broadgauge.results.summary import summarise_stored
from broadgauge.results.traced_cases import traced_case
from broadgauge.running.explaining import ExplainedTraces, beside_of_reference, explain_files
from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError
from broadgauge.specs.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedCase:
    """One case of a run, by one of its trials; or one of two runs, with what differs."""

    label: str
    trial: str
    """Of the first run."""
    traces: ExplainedTraces


@dataclass(frozen=True, slots=True, kw_only=True)
class _TracedTrial:
    label: str
    ranks_per_node: int
    case: Case
    probe: ProbedPath | None
    record: Record
    paths: tuple[Path, ...]


def explain_run(
    folder: Path,
    *,
    against: Path | None = None,
    step_numbers: Sequence[int] | None = None,
    reference: Path | None = None,
) -> tuple[ExplainedCase, ...]:
    """Each traced case; with `against` those that both runs have, side by side.

    `reference`: a run whose collectives stand beside those of cases whose own run has none.

    Raises InputError, RunFolderError.
    """
    trials = _traced_trials(folder)
    others = None if against is None else {each.label: each for each in _traced_trials(against)}
    explained = []
    for trial in trials:
        other = None if others is None else others.get(trial.label)
        if others is not None and other is None:
            continue
        found = explain_files(
            trial.paths,
            against=() if other is None else other.paths,
            step_numbers=step_numbers,
            ranks_per_node=trial.ranks_per_node,
        )
        found = replace(
            found,
            beside=_beside(trial, reference),
            beside_other=NOTHING_BESIDE if other is None else _beside(other, reference),
        )
        explained.append(
            ExplainedCase(label=trial.label, trial=trial.record.record_id, traces=found)
        )
    if not explained:
        labels = ", ".join(trial.label for trial in trials[:4])
        raise InputError(
            f"`{folder}` and `{against}` have no traced case in common",
            hint=f"the first one's: {labels}; name its traces to compare others",
        )
    return tuple(explained)


def _beside(trial: _TracedTrial, reference: Path | None) -> MeasuredBeside:
    """The own run's collectives before those of another."""
    found = MeasuredBeside(probe=trial.probe, off=communication_off(trial.record))
    if found.probe is not None or reference is None:
        return found
    other = beside_of_reference(reference, trial.case)
    return replace(found, probe=other.probe, notes=other.notes)


def _traced_trials(folder: Path) -> list[_TracedTrial]:
    run = summarise_stored(folder)
    found = []
    for summary in run.cases:
        record = _record_of(summary)
        if record is None:
            continue
        kept = [each.path for each in record.artifacts if each.kind == "trace" and each.path]
        paths = tuple(run.folder / path for path in kept)
        trial = _TracedTrial(
            label=summary.case.label,
            ranks_per_node=summary.case.ranks_per_node,
            case=summary.case,
            probe=probed_path(run, summary.case),
            record=record,
            paths=paths,
        )
        found.append(trial)
    if not found:
        raise InputError(
            f"`{folder}` is a run folder without traces",
            hint="`trace: {steps: 2}` in a workload keeps some; or name the profiler's own files",
        )
    return found


def _record_of(summary: CaseSummary) -> Record | None:
    """The one that speaks for the case; else the last that has traces, which nobody has read."""
    known = traced_case(summary)
    candidates = [*summary.good, *([] if known is None else [known.record])]
    kept = [r for r in candidates if any(a.kind == "trace" and a.path for a in r.artifacts)]
    return kept[-1] if kept else None
