"""What do steps of unequal size add up to?"""

import statistics
from collections.abc import Sequence

from broadgauge.merging.metrics import MeasurementBuilder
from broadgauge.messages.rank import StepsBlock, TrainSummary

SameSteps = tuple[StepsBlock, ...]
"""The same block of steps, of every rank."""


def put_packing(
    found: MeasurementBuilder,
    on: Sequence[SameSteps],
    summaries: Sequence[TrainSummary],
    step_s: float | None,
) -> None:
    """Of packed samples: what the measured steps held, in the place of a summary's mean."""
    samples = samples_by_step(on)
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


def samples_by_step(on: Sequence[SameSteps]) -> list[int]:
    """Of each step, all ranks together; empty: all steps are as large."""
    return _by_step(on, "num_samples")


def _by_step(on: Sequence[SameSteps], name: str) -> list[int]:
    blocks = [zip(*(getattr(block, name) for block in same), strict=True) for same in on]
    return [sum(of_ranks) for steps in blocks for of_ranks in steps]
