"""What runs on the ranks: collectives, a real training, or the user's own command.

Each kind has a module of its own; this one joins them, and names what the other rooms use.
"""

from typing import Annotated, get_args

from pydantic import Field

from broadgauge.specs.workloads.collectives import (
    MOST_CAPTURED_ITERATIONS,
    CollectiveOp,
    CollectivesWorkload,
    Engine,
    ModelMessages,
    SizeRange,
)
from broadgauge.specs.workloads.command import (
    MEASURED_BY_US,
    METRIC_NAME_PATTERN,
    CommandMetric,
    CommandWorkload,
)
from broadgauge.specs.workloads.common import WorkloadBase
from broadgauge.specs.workloads.gpt import DATA_TYPE_BYTES, DataType, GptModel, Strategy
from broadgauge.specs.workloads.llama import LlamaModel
from broadgauge.specs.workloads.prepared_data import Packing, PreparedData, SyntheticData
from broadgauge.specs.workloads.storage import StorageWorkload
from broadgauge.specs.workloads.trained_model import TrainedModel
from broadgauge.specs.workloads.training import HubDataset, JsonLines, TrainWorkload

AnyKind = CollectivesWorkload | TrainWorkload | StorageWorkload | CommandWorkload
"""Every kind that there is. A room's registry goes through them and ends in `assert_never`, so that
a new one is refused by the type checker until each room knows it."""
Workload = Annotated[AnyKind, Field(discriminator="kind")]
MODELS: dict[str, type[WorkloadBase]] = {
    get_args(model.model_fields["kind"].annotation)[0]: model for model in get_args(AnyKind)
}
"""By what stands behind `kind:` in an experiment."""

__all__ = [
    "DATA_TYPE_BYTES",
    "MEASURED_BY_US",
    "METRIC_NAME_PATTERN",
    "MODELS",
    "MOST_CAPTURED_ITERATIONS",
    "CollectiveOp",
    "CollectivesWorkload",
    "CommandMetric",
    "CommandWorkload",
    "DataType",
    "Engine",
    "GptModel",
    "HubDataset",
    "JsonLines",
    "LlamaModel",
    "ModelMessages",
    "Packing",
    "PreparedData",
    "SizeRange",
    "StorageWorkload",
    "Strategy",
    "SyntheticData",
    "TrainWorkload",
    "TrainedModel",
    "Workload",
    "WorkloadBase",
]
