"""Which module of results knows this kind of workload? The only place here that asks."""

from typing import assert_never

from broadgauge.results.kinds.collectives import CollectivesInResults
from broadgauge.results.kinds.command import CommandInResults
from broadgauge.results.kinds.kind import KindInResults
from broadgauge.results.kinds.training import TrainingInResults
from broadgauge.specs.workload import (
    CollectivesWorkload,
    CommandWorkload,
    TrainWorkload,
    Workload,
)


def in_results(workload: Workload) -> KindInResults:
    """This workload as its figures are compared."""
    match workload:
        case CollectivesWorkload():
            return CollectivesInResults()
        case TrainWorkload():
            return TrainingInResults()
        case CommandWorkload():
            return CommandInResults(workload)
        case _:
            assert_never(workload)
