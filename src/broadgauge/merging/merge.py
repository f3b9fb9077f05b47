"""What did one trial measure, all ranks and counters taken together?

Pure: what the ranks said and what was counted goes in, the record's part of it comes out. The
order in which ranks are given does not matter but for naming the one at fault.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import assert_never

from broadgauge.merging.batches import merge_batches
from broadgauge.merging.collectives import merge_collectives
from broadgauge.merging.command import merge_command
from broadgauge.merging.metrics import MeasurementBuilder
from broadgauge.merging.rank_blocks import read_blocks
from broadgauge.merging.storage import merge_checkpoint, merge_model_load, merge_raw_files
from broadgauge.merging.training import merge_training
from broadgauge.specs.case import Case
from broadgauge.specs.launching import TrialOutcome
from broadgauge.specs.records.record import Measurement, TrialError
from broadgauge.specs.workloads.workload import (
    BatchesWorkload,
    CheckpointWorkload,
    CollectivesWorkload,
    CommandWorkload,
    ModelLoadWorkload,
    RawFilesWorkload,
    TrainWorkload,
)

SeriesValues = tuple[float | None, ...] | tuple[tuple[float, ...], ...]
"""One value a step (None: a loss that is not finite), or rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedTrial:
    """What the record of a trial says of its measurement.

    Series: training `step_time_s`, `step_without_communication_s` and `loss`, one value a step;
    collectives `iteration_time_s`, rows of (index in `measurement.collectives`, seconds); commands
    one by each metric's name; storages `write_time_s` and `read_time_s`, of checkpoints
    `save_stall_s` and `save_durable_s`, of models `model_load_s`, of batches
    `wait_per_100_samples_s`, one value a repetition, and `step_wait_s`, rows of (epoch, seconds).
    Empty ones are left out.
    """

    measurement: Measurement
    series: Mapping[str, SeriesValues] = field(default_factory=dict)
    error: TrialError | None = None
    """WRONG_RESULT: the figures are there, and the trial has failed all the same."""


def merge(case: Case, outcome: TrialOutcome, peak_flops: float | None) -> MergedTrial:
    """`peak_flops` is that of one rank's device in the workload's data type; None: not known.

    Also of a failed trial: whatever all ranks had measured before is kept.
    """
    found = _find(case, outcome, peak_flops)
    return MergedTrial(
        measurement=found.measurement(),
        series={name: values for name, values in found.series.items() if values},
        error=found.error,
    )


def _find(case: Case, outcome: TrialOutcome, peak_flops: float | None) -> MeasurementBuilder:
    """By the kind of workload: the only place here that asks."""
    ranks = read_blocks(outcome.messages)
    match case.workload:
        case CollectivesWorkload():
            return merge_collectives(case, ranks, outcome.marks)
        case TrainWorkload() as train:
            return merge_training(case, train, ranks, outcome.marks, peak_flops)
        case RawFilesWorkload():
            return merge_raw_files(case, ranks, outcome.marks)
        case CheckpointWorkload():
            return merge_checkpoint(case, ranks, outcome.marks)
        case ModelLoadWorkload():
            return merge_model_load(case, ranks, outcome.marks)
        case BatchesWorkload() as batches:
            return merge_batches(case, batches, ranks, outcome.marks)
        case CommandWorkload() as command:
            return merge_command(case, command, ranks, outcome.marks)
        case _:
            assert_never(case.workload)
