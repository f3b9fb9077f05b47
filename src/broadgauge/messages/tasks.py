"""What is a rank told to measure? A task of its kind, with nothing left to choose.

The leader makes it from a case (specs/workloads/tasks.py): neither agents nor ranks read
experiments. Paths are of the machine that the rank runs on; relative ones start at its
working folder.
"""

from dataclasses import dataclass
from typing import Literal

from broadgauge.messages.adapters import Adapters
from broadgauge.messages.model_shape import ModelShape
from broadgauge.messages.storage import StorageTask
from broadgauge.messages.training_data import PreparedSamples, SyntheticSamples, TokenBudget
from broadgauge.messages.vocabulary import (
    ActivationCheckpointing,
    AttentionName,
    Backend,
    CollectiveOp,
    Comma,
    DataType,
    Device,
    Engine,
    Strategy,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankLayout:
    """How many ranks take part, where, on what, and through which library?"""

    nodes: int
    ranks_per_node: int
    device: Device
    backend: Backend

    @property
    def world_size(self) -> int:
        return self.nodes * self.ranks_per_node


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectivesTask:
    """Collectives by size, or (`pairwise`) messages from each end to each other."""

    kind: Literal["collectives"] = "collectives"
    engine: Engine
    ops: tuple[CollectiveOp, ...]
    dtypes: tuple[DataType, ...]
    sizes_bytes: tuple[int, ...]
    """As wanted, in any order; each rank rounds them to what its peers divide evenly."""
    warm_up_iterations: int
    min_iterations: int
    max_iterations: int
    budget_s: float
    """Of each size."""
    check: bool
    cuda_graphs: bool
    pairwise: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StandardLibraryText:
    """The sources of Python's standard library."""

    kind: Literal["standard_library"] = "standard_library"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileText:
    kind: Literal["file"] = "file"
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonLinesText:
    """A file of JSON objects, one a line."""

    kind: Literal["json_lines"] = "json_lines"
    path: str
    field: str
    """The key of the text; dots step into objects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetText:
    """A data set of Hugging Face's library, from a folder or from its cache."""

    kind: Literal["dataset"] = "dataset"
    dataset: str
    subset: str | None
    split: str
    field: str
    """The column of the text; dots step into objects."""


TextSource = StandardLibraryText | FileText | JsonLinesText | DatasetText
DataSource = TextSource | PreparedSamples | SyntheticSamples


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainTask:
    """Steps of the reference training, with communication on and off."""

    kind: Literal["train"] = "train"
    strategy: Strategy
    model: ModelShape
    batch_per_rank: int
    accumulation: int
    dtype: DataType
    gradient_dtype: DataType
    reshard_after_forward: bool
    bucket_cap_bytes: int | None
    """None: DDP's own choice."""
    learning_rate: float
    steps: int
    warm_up_steps: int
    block_steps: int
    communication_off: bool
    """Also measure the step whose collectives send nothing."""
    text: DataSource
    shard_ranks: int | None = None
    """Of HSDP's groups; None: those of a node."""
    compile: bool = False
    adapters: Adapters | None = None
    """None: all weights are trained."""
    attention: AttentionName = "sdpa"
    activation_checkpointing: ActivationCheckpointing = "none"
    cpu_offload: bool = False
    reduce_each_micro_batch: bool = False
    """Sharded gradients are reduced with each micro-batch, not with the last one alone."""
    packing: TokenBudget | None = None
    """In the place of `batch_per_rank` and `accumulation`; None: they hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSource:
    """Which number in the command's output is a metric? One of `regex` and `json_key` is given."""

    name: str
    regex: str | None
    """Its first group is the number."""
    comma: Comma | None
    """What a comma in a number of the regex means; None: numbers that may be either are refused."""
    json_key: str | None
    """Dots step into objects."""
    skip_first: int
    scale: float = 1.0
    """What a printed number is multiplied by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandTask:
    """The user's own script under torchrun, one torchrun a node."""

    kind: Literal["command"] = "command"
    command: tuple[str, ...]
    working_directory: str | None
    """None: where the process starts."""
    metrics: tuple[MetricSource, ...]
    python: str | None = None
    """An interpreter, the folder of a virtual environment, or a conda environment's name; None:
    this process's own."""
    stack_hook: bool = True
    """Have the ranks' Python load what writes their stacks when they hang."""


Task = CollectivesTask | TrainTask | StorageTask | CommandTask
