"""What does a whole training take, and of what is that made?

Of our own trainer, the slowest rank of each part:

    start_up    a rank's process, from its start to its process group
    model_load  data opened, model built, weights drawn
    training    all steps: of `epochs` epochs where the data set's size is known, else those it ran;
                steps that were not measured at the mean of those that were (epochs.py)
    other       what the warm-up's steps took beyond as many mean steps: compiling, first
                allocations and connections
    checkpoints what it stands still for saves: those of the measured steps, or at their mean one
                every `every_steps` of the epochs' steps; 0 where it saves none
    evaluation  0: it has none

What only the measuring needs (steps without communication, traced steps, waits for counters) is in
none of them, since a training would not have it.

Of a command the whole is what it took, from its start to its end, and the parts are what its output
tells, samples of a metric added up:

    start_up    until the first metric is first seen (less model_load)
    model_load  a metric `model_load_time_s`
    training    a metric `training_time_s`; else from the first to the last time the first metric is
                seen, less evaluations and checkpoints that were printed in between
    evaluation, checkpoints    `evaluation_time_s`, `checkpoint_time_s`
    other       the rest

What no metric tells is unknown, and its time is in the part that was going on or in `other`.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from broadgauge.merging.checkpoints import steps_and_saves
from broadgauge.merging.epochs import epoch_times
from broadgauge.merging.packed_steps import SameSteps, known_epoch, measured_steps
from broadgauge.messages.rank import CommandSamples, TrainSummary
from broadgauge.specs.case import Case
from broadgauge.specs.completion import Completion, CompletionPart
from broadgauge.specs.launching import Mark
from broadgauge.specs.workload import CommandWorkload, TrainWorkload

METRIC_OF_PART: Mapping[CompletionPart, str] = {
    CompletionPart.MODEL_LOAD: "model_load_time_s",
    CompletionPart.TRAINING: "training_time_s",
    CompletionPart.EVALUATION: "evaluation_time_s",
    CompletionPart.CHECKPOINTS: "checkpoint_time_s",
}
"""Of a command: a metric of this name tells the part."""
NO_PROCESS_START = "the kernel does not tell when a rank's process began; it is not in the whole"
LEAST_OTHER_RATIO = -0.01
"""Of the whole: parts that exceed it by more are not apart from each other; by less, two clocks
differ, or one step is in two parts."""


def completion_of_training(
    case: Case,
    train: TrainWorkload,
    on: Sequence[SameSteps],
    summaries: Sequence[TrainSummary],
) -> Completion | None:
    """None: no step was measured, or the ranks are older than what is asked."""
    warm_up_s = _slowest(summaries, "warm_up_s")
    load_s = _slowest(summaries, "model_load_s")
    if not on or warm_up_s is None or load_s is None:
        return None
    steps = measured_steps(train, on)
    epoch = known_epoch(case, train, summaries)
    num_run, ratio = train.warm_up_steps + len(steps.seconds), 1.0
    training_s = num_run * steps.mean_s
    if epoch is not None:
        training_s = epoch_times(steps, epoch, train.epochs).completion_time_s
        ratio = min(1.0, num_run / (train.epochs * epoch.num_steps))
    num_steps = num_run if epoch is None else train.epochs * epoch.num_steps
    start_s = _slowest(summaries, "start_up_s")
    return _added(
        {
            CompletionPart.START_UP: start_s,
            CompletionPart.MODEL_LOAD: load_s,
            CompletionPart.TRAINING: training_s,
            CompletionPart.EVALUATION: 0.0,
            CompletionPart.CHECKPOINTS: _saving_s(train, on, num_steps),
            CompletionPart.OTHER: max(0.0, warm_up_s - train.warm_up_steps * steps.mean_s),
        },
        ratio,
        {} if start_s is not None else {CompletionPart.START_UP: NO_PROCESS_START},
    )


def _saving_s(train: TrainWorkload, on: Sequence[SameSteps], num_steps: int) -> float:
    """In so many steps. Steps that were not measured, the warm-up's too, are saved after as often,
    but where the whole training was measured: then it is what was seen."""
    stalls_s = [gap_s for gap_s in steps_and_saves(on).gaps_s if gap_s]
    if train.checkpoints is None or not stalls_s:
        return 0.0
    measured = sum(len(same[0].seconds) for same in on)
    if num_steps <= train.warm_up_steps + measured:
        return sum(stalls_s)
    return num_steps // train.checkpoints.every_steps * statistics.fmean(stalls_s)


def _slowest(summaries: Sequence[TrainSummary], name: str) -> float | None:
    """None: a rank does not tell."""
    told = [getattr(summary, name) for summary in summaries]
    return max(told) if told and None not in told else None


def _added(
    parts: Mapping[CompletionPart, float | None],
    measured_ratio: float,
    unknown: Mapping[CompletionPart, str],
) -> Completion:
    return Completion(
        total_s=sum(part for part in parts.values() if part is not None),
        parts_s={part.value: parts[part] for part in CompletionPart},
        measured_ratio=measured_ratio,
        unknown={part.value: why for part, why in unknown.items()},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Printed:
    """What a command's output tells of its parts."""

    metrics: frozenset[str]
    """Those that the workload reads."""
    samples: Mapping[str, tuple[float, ...]]
    seen_at_s: Mapping[str, tuple[float, ...]]
    first_seen_s: float | None
    """Of the first metric; None: it was not printed, or an older node."""
    last_seen_s: float | None

    def told_s(self, part: CompletionPart) -> float | None:
        """The sum of the part's own metric; None: there is none."""
        samples = self.samples.get(METRIC_OF_PART[part])
        return sum(samples) if samples else None

    def within_steps_s(self, part: CompletionPart) -> float | None:
        """What of it came between the first and the last step; None: it was read from a file, which
        has no times."""
        name = METRIC_OF_PART[part]
        samples, times = self.samples.get(name, ()), self.seen_at_s.get(name, ())
        if len(samples) != len(times) or self.first_seen_s is None or self.last_seen_s is None:
            return None
        return sum(
            sample
            for sample, at_s in zip(samples, times, strict=True)
            if self.first_seen_s < at_s - sample and at_s <= self.last_seen_s
        )


def completion_of_command(
    command: CommandWorkload, said: Sequence[CommandSamples], marks: Sequence[Mark]
) -> Completion | None:
    """None: it failed, or none of its metrics tells anything of a training."""
    at_s = {mark.label: mark.time_s for mark in marks}
    begin_s, end_s = at_s.get("command:begin"), at_s.get("command:end")
    if begin_s is None or end_s is None or any(each.exit_code for each in said):
        return None
    printed = _printed(command, said)
    parts: dict[CompletionPart, float | None] = {
        part: printed.told_s(part) for part in METRIC_OF_PART
    }
    parts[CompletionPart.START_UP] = _start_up_s(printed, parts[CompletionPart.MODEL_LOAD])
    if parts[CompletionPart.TRAINING] is None:
        parts[CompletionPart.TRAINING] = _between_steps_s(printed)
    if all(part is None for part in parts.values()):
        return None
    unknown = _why_unknown(parts, printed)
    total_s = end_s - begin_s
    other_s = total_s - sum(part for part in parts.values() if part is not None)
    if other_s < LEAST_OTHER_RATIO * total_s:
        for part in (CompletionPart.START_UP, CompletionPart.TRAINING):
            other_s += parts[part] or 0.0
            parts[part] = None
            unknown[part] = NOT_APART
    if other_s < LEAST_OTHER_RATIO * total_s:
        return None
    return _added(parts | {CompletionPart.OTHER: max(0.0, other_s)}, 1.0, unknown)


def _printed(command: CommandWorkload, said: Sequence[CommandSamples]) -> _Printed:
    """Each metric of the first node that has it, as its series."""
    steps = command.metrics[0].name
    names = [metric.name for metric in command.metrics]
    of = {name: next((each for each in said if each.samples.get(name)), None) for name in names}
    node = of[steps]
    times = () if node is None else node.seen_at_s.get(steps, ())
    return _Printed(
        metrics=frozenset(names),
        samples={name: node.samples[name] for name, node in of.items() if node is not None},
        seen_at_s={
            name: node.seen_at_s.get(name, ()) for name, node in of.items() if node is not None
        },
        first_seen_s=None if node is None else node.first_seen_s.get(steps),
        last_seen_s=times[-1] if times else None,
    )


def _start_up_s(printed: _Printed, load_s: float | None) -> float | None:
    """To the first sight of the first metric: a figure of a whole run, printed once, tells nothing
    of when steps began."""
    if printed.first_seen_s is None or printed.first_seen_s == printed.last_seen_s:
        return None
    left_s = printed.first_seen_s - (load_s or 0.0)
    return left_s if left_s >= 0 else None


def _between_steps_s(printed: _Printed) -> float | None:
    """From the first to the last step, less what was printed of evaluations and checkpoints in
    between."""
    first_s, last_s = printed.first_seen_s, printed.last_seen_s
    inside = [
        printed.within_steps_s(part)
        for part in (CompletionPart.EVALUATION, CompletionPart.CHECKPOINTS)
    ]
    known = [part for part in inside if part is not None]
    if first_s is None or last_s is None or last_s <= first_s or len(known) < len(inside):
        return None
    return max(0.0, last_s - first_s - sum(known))


NOT_APART = (
    "what the command prints of its parts adds up to more than it took: they are not apart from "
    "each other; in `other`"
)
NO_STEPS_SEEN = (
    "the first metric is a figure of a file or of the whole run, which does not tell when steps "
    "began; in `other`"
)
FROM_A_FILE = (
    "evaluations or checkpoints are read from a file, which does not tell when they were; in "
    "`other`"
)


def _why_unknown(
    parts: Mapping[CompletionPart, float | None], printed: _Printed
) -> dict[CompletionPart, str]:
    """Of each part that is null, why, and where its time is."""
    start, training = CompletionPart.START_UP, CompletionPart.TRAINING
    has_steps = printed.first_seen_s is not None and printed.first_seen_s != printed.last_seen_s
    why = {start: NO_STEPS_SEEN, training: FROM_A_FILE if has_steps else NO_STEPS_SEEN}
    where = {
        CompletionPart.MODEL_LOAD: "start_up" if parts[start] is not None else "other",
        CompletionPart.EVALUATION: "training or other",
        CompletionPart.CHECKPOINTS: "training or other",
    }
    for part, place in where.items():
        metric = METRIC_OF_PART[part]
        read = f"`{metric}` had no number" if metric in printed.metrics else f"no metric `{metric}`"
        why[part] = f"{read}; in `{place}`"
    return {part: why[part] for part, value in parts.items() if value is None}
