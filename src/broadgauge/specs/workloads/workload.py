"""What runs on the ranks: collectives, a real training, or the user's own command.

Each kind has a module of its own; this one joins them, and names what the other rooms use.
"""

from typing import Annotated, Any, get_args

from pydantic import BaseModel, Discriminator, Field, Tag

from broadgauge.specs.text.fields import models_in
from broadgauge.specs.workloads.batches import BatchesWorkload
from broadgauge.specs.workloads.checkpoint import CheckpointWorkload
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
from broadgauge.specs.workloads.model_load import ModelLoadWorkload
from broadgauge.specs.workloads.prepared_data import Packing, PreparedData, SyntheticData
from broadgauge.specs.workloads.raw_files import RawFilesWorkload
from broadgauge.specs.workloads.storage import StorageWorkload
from broadgauge.specs.workloads.trained_model import TrainedModel
from broadgauge.specs.workloads.training import HubDataset, JsonLines, TrainWorkload


def phase(data: Any) -> Any:
    """Of a workload `storage`: `raw` where nothing is said, as it was the only one once."""
    return data.get("phase", "raw") if isinstance(data, dict) else getattr(data, "phase", "raw")


AnyPhase = Annotated[
    Annotated[RawFilesWorkload, Tag("raw")]
    | Annotated[CheckpointWorkload, Tag("checkpoint")]
    | Annotated[ModelLoadWorkload, Tag("load")]
    | Annotated[BatchesWorkload, Tag("batches")],
    Discriminator(phase),
]
AnyKind = CollectivesWorkload | TrainWorkload | AnyPhase | CommandWorkload
"""Every kind that there is. A room's registry goes through them and ends in `assert_never`, so that
a new one is refused by the type checker until each room knows it."""
Workload = Annotated[AnyKind, Field(discriminator="kind")]
MODELS: tuple[type[BaseModel], ...] = tuple(models_in(AnyKind))
KINDS: tuple[str, ...] = tuple(
    dict.fromkeys(get_args(model.model_fields["kind"].annotation)[0] for model in MODELS)
)
"""What may stand behind `kind:` in an experiment."""
PHASES: tuple[str, ...] = tuple(
    get_args(model.model_fields["phase"].annotation)[0] for model in models_in(AnyPhase)
)
"""What may stand behind `phase:` in a workload `storage`."""

__all__ = [
    "DATA_TYPE_BYTES",
    "KINDS",
    "MEASURED_BY_US",
    "METRIC_NAME_PATTERN",
    "MODELS",
    "MOST_CAPTURED_ITERATIONS",
    "PHASES",
    "AnyPhase",
    "BatchesWorkload",
    "CheckpointWorkload",
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
    "ModelLoadWorkload",
    "ModelMessages",
    "Packing",
    "PreparedData",
    "RawFilesWorkload",
    "SizeRange",
    "StorageWorkload",
    "Strategy",
    "SyntheticData",
    "TrainWorkload",
    "TrainedModel",
    "Workload",
    "WorkloadBase",
]
