"""What do steps of unequal size add up to, and how long is an epoch of them?"""

import statistics
from collections.abc import Sequence

from broadgauge.merging.collectives import slowest_rank_s
from broadgauge.merging.epochs import Epoch, MeasuredSteps, epoch_times
from broadgauge.merging.metrics import MeasurementBuilder
from broadgauge.messages.rank import StepsBlock, TrainSummary
from broadgauge.specs.case import Case
from broadgauge.specs.workload import TrainWorkload

SameSteps = tuple[StepsBlock, ...]
"""The same block of steps, of every rank."""


def put_packing(
    found: MeasurementBuilder,
    on: Sequence[SameSteps],
    summaries: Sequence[TrainSummary],
    step_s: float | None,
) -> None:
    """Of batches by tokens: what the measured steps held, in the place of a summary's mean."""
    samples = _by_step(on, "num_samples")
    if not samples or not step_s:
        return
    time_s = step_s * len(samples)
    found.put("samples_per_s", sum(samples) / time_s)
    found.put("tokens_per_s", sum(_by_step(on, "num_tokens")) / time_s)
    counts = [s.micro_batches_count for s in summaries if s.micro_batches_count is not None]
    padding = [s.padding_ratio for s in summaries if s.padding_ratio is not None]
    reason = "the training did not end"
    found.put("micro_batches_count", statistics.fmean(counts) if counts else None, reason)
    found.put("padding_ratio", statistics.fmean(padding) if padding else None, reason)


def put_epochs(
    found: MeasurementBuilder,
    case: Case,
    train: TrainWorkload,
    on: Sequence[SameSteps],
    summaries: Sequence[TrainSummary],
) -> None:
    """Where the workload or its data say how many samples an epoch has. The rule: epochs.py."""
    epoch = known_epoch(case, train, summaries)
    if epoch is None or not on:
        return
    steps = measured_steps(train, on)
    times = epoch_times(steps, epoch, train.epochs)
    found.put("epoch_time_s", times.epoch_time_s)
    found.put("epoch_measured_ratio", times.epoch_measured_ratio)
    found.put("completion_time_s", times.completion_time_s)


def measured_steps(train: TrainWorkload, on: Sequence[SameSteps]) -> MeasuredSteps:
    """The communicating steps of a training, after its warm-up."""
    return MeasuredSteps(
        first=train.warm_up_steps,
        seconds=[s for same in on for s in slowest_rank_s([block.seconds for block in same])],
        num_samples=_by_step(on, "num_samples") or None,
    )


def known_epoch(
    case: Case, train: TrainWorkload, summaries: Sequence[TrainSummary]
) -> Epoch | None:
    """As the workload or its data have it; None: they don't say."""
    if train.packing is not None:
        size = train.packing.effective_batch_size
        known = next((s.epoch_samples for s in summaries if s.epoch_samples is not None), None)
    else:
        size = train.batch_per_rank * train.accumulation * case.world_size
        known = train.epoch_samples
    return None if known is None else Epoch(num_samples=known, samples_per_step=size)


def _by_step(on: Sequence[SameSteps], name: str) -> list[int]:
    """Of each step, all ranks together; empty: all steps are as large."""
    blocks = [zip(*(getattr(block, name) for block in same), strict=True) for same in on]
    return [sum(of_ranks) for steps in blocks for of_ranks in steps]
