"""What is a rank told to measure? A task of its kind, with nothing left to choose.

The leader makes it from a case (specs/tasks.py): neither agents nor ranks read experiments. Paths
are of the machine that the rank runs on; relative ones start at its working folder.
"""

from dataclasses import dataclass
from typing import Literal

from broadgauge.messages.checkpoints import TrainCheckpoints
from broadgauge.messages.model_shape import Adapters, ModelShape
from broadgauge.messages.storage import StoragePlace, StorageTask
from broadgauge.messages.vocabulary import (
    ActivationCheckpointing,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedText:
    """Samples that were tokenised before: messages/prepared_set.py."""

    kind: Literal["prepared"] = "prepared"
    path: str
    """The folder's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesizedText:
    """Samples of random tokens, which ranks make up: messages/synthetic_lengths.py."""

    kind: Literal["synthesized"] = "synthesized"
    samples: int
    total_tokens: int
    """Of all of them."""
    longest: int
    """In tokens."""


TextSource = (
    StandardLibraryText | FileText | JsonLinesText | DatasetText | PreparedText | SynthesizedText
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBudget:
    """Batches of whole samples, by tokens: probes/training/packing.py."""

    max_batch_len: int
    """Of a rank and micro-batch."""
    effective_batch_size: int
    """Samples of a step, all ranks together."""


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
    text: TextSource
    adapters: Adapters | None = None
    """None: all weights are trained."""
    shard_ranks: int | None = None
    """HSDP; None: the ranks of a node."""
    compile: bool = False
    activation_checkpointing: ActivationCheckpointing = "none"
    cpu_offload: bool = False
    learning_rate_warm_up_steps: int = 0
    reduce_each_micro_batch: bool = False
    """False: a step's last one alone."""
    packing: TokenBudget | None = None
    """In the place of `batch_per_rank` and `accumulation`; None: they hold."""
    traced_steps: int = 0
    """Steps under the profiler, after all others."""
    storage: StoragePlace | None = None
    """What it reads from and writes to; None: it names none."""
    checkpoints: TrainCheckpoints | None = None
    """None: none are saved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSource:
    """Which number is a metric? One of `regex`, `json_key`, `trainer_state` and `tensorboard` is
    given: the first two are of the command's output, the others of files that it leaves."""

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
    trainer_state: str | None = None
    """A `trainer_state.json`, or a folder of checkpoints with some; from the command's folder."""
    key: str | None = None
    """Of the entries of its `log_history`."""
    tensorboard: str | None = None
    """An event file, or a folder with some anywhere below; from the command's folder."""
    tag: str | None = None
    """Of the scalars in them."""

    @property
    def file(self) -> str | None:
        """What is read once the command has ended; None: its output is read as it comes."""
        return self.trainer_state if self.trainer_state is not None else self.tensorboard


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedLaunch:
    """The command once more, with the profiler on for some of its steps."""

    steps: int
    after_steps: int
    """Steps before the profiler starts."""


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
    config: str | None = None
    """A JSON file there, whose keys are arguments behind the command; None: none."""
    stack_hook: bool = True
    """Have the ranks' Python load what writes their stacks when they hang."""
    traced_launch: TracedLaunch | None = None
    """After the one that is timed; None: there is none."""
    storage: StoragePlace | None = None
    """What `{storage.data}` and its like stand for in its words and variables; None: it names none.
    """


Task = CollectivesTask | TrainTask | CommandTask | StorageTask
