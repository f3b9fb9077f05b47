"""Which module of advise knows this kind of workload? The only place here that asks."""

from typing import assert_never

from broadgauge.advise.kinds.collectives import CollectivesInAdvise
from broadgauge.advise.kinds.command import CommandInAdvise
from broadgauge.advise.kinds.kind import KindInAdvise
from broadgauge.advise.kinds.storage import (
    BatchesInAdvise,
    CheckpointInAdvise,
    ModelLoadInAdvise,
    RawFilesInAdvise,
)
from broadgauge.advise.kinds.training import TrainingInAdvise
from broadgauge.specs.workloads.workload import (
    BatchesWorkload,
    CheckpointWorkload,
    CollectivesWorkload,
    CommandWorkload,
    ModelLoadWorkload,
    RawFilesWorkload,
    TrainWorkload,
    Workload,
)


def in_advise(workload: Workload) -> KindInAdvise:
    """This workload as it is judged."""
    match workload:
        case CollectivesWorkload():
            return CollectivesInAdvise()
        case TrainWorkload():
            return TrainingInAdvise()
        case CommandWorkload():
            return CommandInAdvise()
        case RawFilesWorkload():
            return RawFilesInAdvise()
        case CheckpointWorkload():
            return CheckpointInAdvise()
        case ModelLoadWorkload():
            return ModelLoadInAdvise()
        case BatchesWorkload() as batches:
            return BatchesInAdvise(batches)
        case _:
            assert_never(workload)
