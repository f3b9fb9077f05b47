"""What runs on the ranks: collectives, a real training, or the user's own command.

Each kind has a module of its own; this one joins them, and names what the other rooms use.
"""

from typing import Annotated

from pydantic import Field

from broadgauge.specs.collectives import (
    MOST_CAPTURED_ITERATIONS,
    CollectiveOp,
    CollectivesWorkload,
    Engine,
    ModelMessages,
    SizeRange,
)
from broadgauge.specs.command import (
    MEASURED_BY_US,
    METRIC_NAME_PATTERN,
    CommandMetric,
    CommandWorkload,
)
from broadgauge.specs.gpt import DATA_TYPE_BYTES, DataType, GptModel, Strategy
from broadgauge.specs.training import HubDataset, JsonLines, TrainWorkload
from broadgauge.specs.workload_base import WorkloadBase

PLANNED_KINDS = ("storage",)

Workload = Annotated[
    CollectivesWorkload | TrainWorkload | CommandWorkload, Field(discriminator="kind")
]

__all__ = [
    "DATA_TYPE_BYTES",
    "MEASURED_BY_US",
    "METRIC_NAME_PATTERN",
    "MOST_CAPTURED_ITERATIONS",
    "PLANNED_KINDS",
    "CollectiveOp",
    "CollectivesWorkload",
    "CommandMetric",
    "CommandWorkload",
    "DataType",
    "Engine",
    "GptModel",
    "HubDataset",
    "JsonLines",
    "ModelMessages",
    "SizeRange",
    "Strategy",
    "TrainWorkload",
    "Workload",
    "WorkloadBase",
]
