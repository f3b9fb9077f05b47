"""Which module of results knows this kind of workload? The only place here that asks."""

from typing import assert_never

from broadgauge.results.kinds.collectives import COLLECTIVES_TABLE, CollectivesInResults
from broadgauge.results.kinds.command import CommandInResults
from broadgauge.results.kinds.kind import KindInResults
from broadgauge.results.kinds.storage import (
    BATCHES,
    CHECKPOINT,
    FILE_ACCESSES_TABLE,
    MODEL_LOAD,
    RAW_FILES,
)
from broadgauge.results.kinds.training import TrainingInResults
from broadgauge.results.table_names import TableName
from broadgauge.results.tables import RowTable
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

ROW_TABLES: dict[TableName, RowTable] = {
    "collectives": COLLECTIVES_TABLE,
    "file_accesses": FILE_ACCESSES_TABLE,
}
"""What is exported beside one row a trial, by the name that a record has it under."""


def in_results(workload: Workload) -> KindInResults:
    """This workload as its figures are compared."""
    match workload:
        case CollectivesWorkload():
            return CollectivesInResults()
        case TrainWorkload():
            return TrainingInResults()
        case CommandWorkload():
            return CommandInResults(workload)
        case RawFilesWorkload():
            return RAW_FILES
        case CheckpointWorkload():
            return CHECKPOINT
        case ModelLoadWorkload():
            return MODEL_LOAD
        case BatchesWorkload():
            return BATCHES
        case _:
            assert_never(workload)
