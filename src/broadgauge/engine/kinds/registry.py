"""Which module of the engine knows this kind of workload? The only place here that asks."""

from typing import assert_never

from broadgauge.engine.kinds.collectives import CollectivesInEngine
from broadgauge.engine.kinds.command import CommandInEngine
from broadgauge.engine.kinds.kind import KindInEngine
from broadgauge.engine.kinds.storage import StorageInEngine
from broadgauge.engine.kinds.training import TrainingInEngine
from broadgauge.specs.workloads.workload import (
    CollectivesWorkload,
    CommandWorkload,
    StorageWorkload,
    TrainWorkload,
    Workload,
)


def in_engine(workload: Workload) -> KindInEngine:
    """This workload as the engine plans it."""
    match workload:
        case CollectivesWorkload():
            return CollectivesInEngine(workload)
        case TrainWorkload():
            return TrainingInEngine(workload)
        case CommandWorkload():
            return CommandInEngine()
        case StorageWorkload():
            return StorageInEngine(workload)
        case _:
            assert_never(workload)
