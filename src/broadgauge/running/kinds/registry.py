"""Which module here knows this kind of workload? The only place that asks."""

from typing import assert_never

from broadgauge.running.kinds.collectives import CollectivesInRunning
from broadgauge.running.kinds.command import CommandInRunning
from broadgauge.running.kinds.kind import KindInRunning
from broadgauge.running.kinds.storage import StorageInRunning
from broadgauge.running.kinds.training import TrainingInRunning
from broadgauge.specs.workloads.workload import (
    CollectivesWorkload,
    CommandWorkload,
    StorageWorkload,
    TrainWorkload,
    Workload,
)


def in_running(workload: Workload) -> KindInRunning:
    """This workload as it is started."""
    match workload:
        case CollectivesWorkload():
            return CollectivesInRunning(workload)
        case TrainWorkload():
            return TrainingInRunning(workload)
        case CommandWorkload():
            return CommandInRunning(workload)
        case StorageWorkload():
            return StorageInRunning(workload)
        case _:
            assert_never(workload)
