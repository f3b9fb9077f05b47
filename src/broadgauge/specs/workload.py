"""What runs on the ranks: collectives, a real training, the user's own command, or the phases of a
storage.

Each kind has a module of its own; this one joins them, and names what the other rooms use.
"""

from typing import Annotated, get_args

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
from broadgauge.specs.llama import LlamaModel
from broadgauge.specs.lora import Lora
from broadgauge.specs.prepared_data import (
    Packing,
    PreparedData,
    SynthesizedData,
    SynthesizedSamples,
)
from broadgauge.specs.storage_workload import StorageWorkload
from broadgauge.specs.trained_model import TrainedModel
from broadgauge.specs.training import HubDataset, JsonLines, TrainWorkload
from broadgauge.specs.workload_base import WorkloadBase

AnyKind = CollectivesWorkload | TrainWorkload | CommandWorkload | StorageWorkload
"""Every kind that there is. A room's registry goes through them and ends in `assert_never`, so that
a new one is refused by the type checker until each room knows it."""
Workload = Annotated[AnyKind, Field(discriminator="kind")]
MODELS: dict[str, type[WorkloadBase]] = {
    get_args(model.model_fields["kind"].annotation)[0]: model for model in get_args(AnyKind)
}
"""By what stands behind `kind:` in an experiment."""


def name_on_storage(workload: AnyKind, storage: str) -> str:
    """Of its case on this storage: `phases-nvme`."""
    return f"{workload.name}-{storage}"


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
    "Lora",
    "ModelMessages",
    "Packing",
    "PreparedData",
    "SizeRange",
    "StorageWorkload",
    "Strategy",
    "SynthesizedData",
    "SynthesizedSamples",
    "TrainWorkload",
    "TrainedModel",
    "Workload",
    "WorkloadBase",
    "name_on_storage",
]
