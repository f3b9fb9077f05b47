"""How long is an epoch, and a whole training, when only some of its steps were run?

Steps are counted from the training's first, warm-up included. An epoch of n samples has

    steps = ceil(n / samples a step, all ranks)

- `epoch_time_s` is the second epoch's, steps to 2 x steps - 1, the one that published figures take,
  since the first has the start's overheads in it. *Measured* where every step of it was: their sum.
  Else *extrapolated*: the mean measured step x steps; of packed samples, whose steps differ, the
  measured time a sample x the epoch's samples, those left out not counted.
  `epoch_measured_ratio` is the share of its steps that was measured: below 1 it is extrapolated.
- `training_time_s` is that of all epochs: steps that were run, the warm-up's too, as long as they
  took, the others at the mean measured step.
- `completion_time_s` is start-up, loading and training together, of the slowest rank in each; what
  only the measuring needs (steps without communication, waits for counters) is in none of them. It
  has no evaluations and no checkpoints. `completion_measured_ratio` is the share of the training's
  steps that was run.

Source: what is published so: "The Impact of GPU Networking (Part 1)" (2025-03-14), time of the
second epoch; 35,456 samples, 2,216 steps of 16 on one GPU and 1,108 of 32 on two.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from broadgauge.merging.metrics import MeasurementBuilder
from broadgauge.messages.epochs import steps_per_epoch
from broadgauge.messages.rank import TrainSummary
from broadgauge.specs.case import Case
from broadgauge.specs.workloads.workload import TrainWorkload


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSteps:
    """The first steps of a training, slowest rank."""

    warm_up_s: float
    """Of all steps of the warm-up together."""
    warm_up_steps: int
    measured_s: Sequence[float]
    """Of each step after it; at least one."""
    mean_s: float
    """What a step that was not run is taken to last."""

    def measured_within(self, begin: int, end: int) -> Sequence[float]:
        """Those of the steps begin to end - 1 that were measured."""
        first = self.warm_up_steps
        return self.measured_s[max(0, begin - first) : max(0, end - first)]


def epoch_time(steps: RunSteps, epoch_steps: int) -> tuple[float, float]:
    """Seconds of the second epoch, and the share of it that was measured."""
    second = steps.measured_within(epoch_steps, 2 * epoch_steps)
    is_whole = len(second) == epoch_steps
    seconds = sum(second) if is_whole else steps.mean_s * epoch_steps
    return seconds, len(second) / epoch_steps


def training_time(steps: RunSteps, all_steps: int) -> tuple[float, float]:
    """Seconds of so many steps, and the share of them that was run."""
    if all_steps <= steps.warm_up_steps:
        return steps.warm_up_s * all_steps / steps.warm_up_steps, 1.0
    known = steps.measured_within(0, all_steps)
    num_run = steps.warm_up_steps + len(known)
    seconds = steps.warm_up_s + sum(known) + (all_steps - num_run) * steps.mean_s
    return seconds, num_run / all_steps


def put_completion(
    found: MeasurementBuilder,
    case: Case,
    train: TrainWorkload,
    summaries: Sequence[TrainSummary],
    *,
    measured_s: Sequence[float],
    num_samples: Sequence[int],
) -> None:
    """What starting and loading took; and, where the workload or its packed samples say how long an
    epoch is, an epoch's time and the whole training's.

    `measured_s`: of each step, slowest rank; `num_samples`: of each, all ranks; empty: all are as
    large.
    """
    start_up_s, load_s = _slowest(summaries, "start_up_s"), _slowest(summaries, "load_s")
    for name, seconds in (("start_up_time_s", start_up_s), ("load_time_s", load_s)):
        if seconds is not None:
            found.put(name, seconds)
    warm_up_s = _slowest(summaries, "warm_up_s")
    epoch_samples = _epoch_samples(train, summaries)
    if epoch_samples is None or not measured_s or warm_up_s is None:
        return
    epoch_steps = steps_per_epoch(epoch_samples, train.samples_per_step(case.world_size))
    mean_s = statistics.fmean(measured_s)
    if num_samples:
        taken = _taken_samples(summaries, epoch_samples)
        mean_s = sum(measured_s) / sum(num_samples) * taken / epoch_steps
    steps = RunSteps(
        warm_up_s=warm_up_s,
        warm_up_steps=train.warm_up_steps,
        measured_s=measured_s,
        mean_s=mean_s,
    )
    epoch_s, epoch_ratio = epoch_time(steps, epoch_steps)
    training_s, run_ratio = training_time(steps, train.epochs * epoch_steps)
    found.put("epoch_time_s", epoch_s)
    found.put("epoch_measured_ratio", epoch_ratio)
    found.put("training_time_s", training_s)
    parts = (start_up_s, load_s, training_s)
    known = [part for part in parts if part is not None]
    reason = "the kernel does not tell when a rank's process began"
    found.put("completion_time_s", sum(known) if len(known) == len(parts) else None, reason)
    found.put("completion_measured_ratio", run_ratio)


def _epoch_samples(train: TrainWorkload, summaries: Sequence[TrainSummary]) -> int | None:
    """As the workload or its packed samples have it; None: they don't say."""
    if train.packing is None:
        return train.epoch_samples
    return next((s.epoch_samples for s in summaries if s.epoch_samples is not None), None)


def _taken_samples(summaries: Sequence[TrainSummary], epoch_samples: int) -> int:
    """Of an epoch's packed samples, those that are trained on: its steps are counted with the
    others, which take no time."""
    return next((s.taken_samples for s in summaries if s.taken_samples is not None), epoch_samples)


def _slowest(summaries: Sequence[TrainSummary], name: str) -> float | None:
    """None: a rank does not say."""
    told = [getattr(summary, name) for summary in summaries]
    return max(told) if told and None not in told else None
