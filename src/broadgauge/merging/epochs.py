"""How long is an epoch, and the whole training, when only some of its steps were measured?

Steps are counted from the training's first, warm-up included. An epoch of n samples has

    steps = ceil(n / samples a step, all ranks)

and the second epoch is steps to 2 x steps - 1, the one that published figures take, since the
first has the start's overheads in it.

- `epoch_time_s` is *measured* where every step of the second epoch was: their sum. Else it is
  *extrapolated*: the mean measured step x steps; of batches by tokens, whose steps differ in
  samples, the measured time a sample x the epoch's samples.
- `epoch_measured_ratio` says which: the share of the second epoch's steps that was measured. 1 is
  measured, anything below is extrapolated.
- `completion_time_s` is all epochs' steps: measured ones as they were, all others (the warm-up at
  least) at the mean. Start-up, evaluation and checkpoints are in none of these.

Source: what is published so: "The Impact of GPU Networking (Part 1)" (2025-03-14), time of the
second epoch; 35,456 samples, 2,216 steps of 16 on one GPU and 1,108 of 32 on two.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from broadgauge.messages.epochs import steps_per_epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """An epoch of a training."""

    num_samples: int
    samples_per_step: int
    """All ranks; of its last step, what is left."""

    @property
    def num_steps(self) -> int:
        return steps_per_epoch(self.num_samples, self.samples_per_step)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredSteps:
    """Steps in a row of one training."""

    first: int
    """The number of steps before them."""
    seconds: Sequence[float]
    """Slowest rank."""
    num_samples: Sequence[int] | None = None
    """Of each step, all ranks; None: all are as large."""

    @property
    def mean_s(self) -> float:
        return statistics.fmean(self.seconds)

    def within(self, begin: int, end: int) -> Sequence[float]:
        """Those of the steps begin to end - 1 that were measured."""
        return self.seconds[max(0, begin - self.first) : max(0, end - self.first)]


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochTimes:
    epoch_time_s: float
    epoch_measured_ratio: float
    completion_time_s: float


def epoch_times(steps: MeasuredSteps, epoch: Epoch, num_epochs: int) -> EpochTimes:
    """Of a training of which at least one step was measured."""
    num_steps = epoch.num_steps
    second = steps.within(num_steps, 2 * num_steps)
    extrapolated_s = _extrapolated_epoch_s(steps, epoch)
    all_steps = num_epochs * num_steps
    known = steps.within(0, all_steps)
    others = (all_steps - len(known)) / num_steps
    return EpochTimes(
        epoch_time_s=sum(second) if len(second) == num_steps else extrapolated_s,
        epoch_measured_ratio=len(second) / num_steps,
        completion_time_s=sum(known) + others * extrapolated_s,
    )


def _extrapolated_epoch_s(steps: MeasuredSteps, epoch: Epoch) -> float:
    if steps.num_samples is None or not sum(steps.num_samples):
        return steps.mean_s * epoch.num_steps
    return sum(steps.seconds) / sum(steps.num_samples) * epoch.num_samples
