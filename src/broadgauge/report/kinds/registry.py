"""Which module of report knows this kind of workload? The only place here that asks."""

from typing import assert_never

from broadgauge.report.kinds.collectives import CollectivesInReport
from broadgauge.report.kinds.command import CommandInReport
from broadgauge.report.kinds.kind import KindInReport
from broadgauge.report.kinds.storage import (
    BatchesInReport,
    CheckpointInReport,
    ModelLoadInReport,
    RawFilesInReport,
)
from broadgauge.report.kinds.training import TrainingInReport
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


def in_report(workload: Workload) -> KindInReport:
    """This workload as it is shown."""
    match workload:
        case CollectivesWorkload():
            return CollectivesInReport()
        case TrainWorkload():
            return TrainingInReport(workload)
        case CommandWorkload():
            return CommandInReport(workload)
        case RawFilesWorkload():
            return RawFilesInReport()
        case CheckpointWorkload():
            return CheckpointInReport()
        case ModelLoadWorkload():
            return ModelLoadInReport()
        case BatchesWorkload():
            return BatchesInReport()
        case _:
            assert_never(workload)
