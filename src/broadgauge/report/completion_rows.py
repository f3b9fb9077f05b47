"""What does a whole training take, as rows and words that page and terminal share?"""

from collections.abc import Iterator, Sequence

from broadgauge.results.completed_cases import CompletedCase, completed_cases
from broadgauge.results.model import RunSummary
from broadgauge.specs.completion import CompletionPart
from broadgauge.specs.units import show_ratio, show_time

COMPLETION_WORDS = {
    CompletionPart.START_UP: "start-up",
    CompletionPart.MODEL_LOAD: "model load",
    CompletionPart.TRAINING: "training",
    CompletionPart.EVALUATION: "evaluation",
    CompletionPart.CHECKPOINTS: "checkpoints",
    CompletionPart.OTHER: "other",
}
"""In the order in which bars are stacked."""
COMPLETION_TITLE = "Time to completion"
COMPLETION_HOW = (
    "From the start of the ranks to the end of the training; what only the measuring needs is left "
    "out. Of several trials the one whose whole is the median. The known parts add up to it."
)


def completion_rows(run: RunSummary) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The head and a row a case; no rows where nothing is known of whole trainings."""
    cases = completed_cases(run)
    parts = [part for part in CompletionPart if any(_is_worth_a_column(part, c) for c in cases)]
    head = ("", "whole", *(COMPLETION_WORDS[part] for part in parts))
    return head, [_row(case, parts) for case in cases]


def _is_worth_a_column(part: CompletionPart, case: CompletedCase) -> bool:
    """Something there, or something unknown."""
    return case.completion.parts_s.get(part) != 0.0


def _row(case: CompletedCase, parts: Sequence[CompletionPart]) -> tuple[str, ...]:
    return (
        case.summary.case.label,
        _whole(case),
        *(_part(case, part) for part in parts),
    )


def _whole(case: CompletedCase) -> str:
    """The median trial's, with what the others took."""
    whole = show_time(case.completion.total_s)
    how = "extrapolated" if case.completion.is_extrapolated else "measured"
    if case.num_trials == 1:
        return f"{whole}\n{how}, 1 trial"
    between = f"{show_time(case.shortest_s)} to {show_time(case.longest_s)}"
    return f"{whole}\n{how}, {case.num_trials} trials: {between}"


def _part(case: CompletedCase, part: CompletionPart) -> str:
    time_s = case.completion.parts_s.get(part)
    if time_s is None:
        return "unknown"
    if not time_s:
        return "–"
    share = show_ratio(time_s / case.completion.total_s, 2) if case.completion.total_s else ""
    return f"{show_time(time_s)}\n{share}"


def completion_notes(run: RunSummary) -> Iterator[str]:
    """What is extrapolated, and where the time of unknown parts is; the same of several cases
    once."""
    cases = completed_cases(run)
    for note, labels in _gathered(cases).items():
        every = len(labels) == len(cases) and len(labels) > 1
        yield f"{'all' if every else ', '.join(labels)}: {note}"


def _gathered(cases: Sequence[CompletedCase]) -> dict[str, list[str]]:
    """The labels of the cases that each note is of."""
    found: dict[str, list[str]] = {}
    for case in cases:
        for note in _notes(case):
            found.setdefault(note, []).append(case.summary.case.label)
    return found


def _notes(case: CompletedCase) -> Iterator[str]:
    completion = case.completion
    if completion.is_extrapolated:
        share = show_ratio(completion.measured_ratio, 2)
        yield f"training is extrapolated from its measured steps: {share} of all steps ran"
    for part, why in completion.unknown.items():
        yield f"unknown: {COMPLETION_WORDS[CompletionPart(part)]} ({why})"
