"""What runs on the ranks: collectives, a real training, or the user's own command."""

import math
import re
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from broadgauge.specs.base import EnvironmentVariables, Name, Spec, not_yet, placed_error
from broadgauge.specs.metrics import UNIT_SUFFIXES, unit_of
from broadgauge.specs.model_messages import ddp_buckets, fsdp_units, gradient_elements
from broadgauge.specs.units import SizeBytes, TimeS

CollectiveOp = Literal[
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "broadcast",
    "reduce",
    "send_recv",
]
Strategy = Literal["ddp", "fsdp"]
Engine = Literal["torch", "nccl-tests"]
DataType = Literal["float32", "bfloat16"]
DATA_TYPE_BYTES: dict[DataType, int] = {"float32": 4, "bfloat16": 2}

METRIC_NAME_PATTERN = r"^[a-z][a-z0-9_]*$"
MAX_SIZES = 1000
"""A typing error in `factor` must not unfold for ever; the plan bounds the rows of a record."""

MOST_CAPTURED_ITERATIONS = 256
"""In one CUDA graph: some thousand nodes, of which NCCL keeps memory for each call."""

MEASURED_BY_US = (
    *("busbw_gbyte_per_s", "algbw_gbyte_per_s", "wire_bytes", "link_rate_gbps", "line_share_ratio"),
    *("amplification_ratio", "cpu_busy_ratio", "cpu_s_per_gbyte", "retransmits_count"),
    *("drops_count", "network_cost_s", "network_share_ratio", "slowest_pair_ratio"),
)
"""Metrics that a command may not print: they would be taken for counted ones."""

PLANNED_STRATEGIES = ("hsdp", "lora")
PLANNED_KINDS = ("storage",)


class SizeRange(Spec):
    """Message sizes from `from_bytes` to `to_bytes`, each `factor` times the one before."""

    from_bytes: SizeBytes
    """The smallest."""
    to_bytes: SizeBytes
    """The largest, where the factor hits it."""
    factor: float = Field(default=4, gt=1, le=1024)
    """Of each size over the one before."""

    @model_validator(mode="after")
    def _in_order(self) -> "SizeRange":
        if self.from_bytes > self.to_bytes:
            raise ValueError("`from_bytes` is larger than `to_bytes`")
        steps = math.log(self.to_bytes / self.from_bytes) / math.log(self.factor)
        if steps > MAX_SIZES:
            raise ValueError(f"`factor` gives more than {MAX_SIZES} sizes")
        return self

    def expand(self) -> tuple[int, ...]:
        sizes = [self.from_bytes]
        while (size := round(self.from_bytes * self.factor ** len(sizes))) <= self.to_bytes:
            sizes.append(size)
        return tuple(sizes)


class GptModel(Spec):
    """The shape of a decoder-only transformer (GPT-2's block: pre-norm, GELU, learned positions).

    Bytes are the tokens, so the vocabulary is 256 unless another is named.
    """

    layers: int = Field(default=4, ge=1, le=512)
    """Blocks."""
    hidden: int = Field(default=256, ge=8, le=65_536)
    """Width; a multiple of `heads`."""
    heads: int = Field(default=4, ge=1, le=1024)
    """Of attention."""
    vocabulary: int = Field(default=256, ge=256, le=1_000_000)
    """Rows of the token embedding, which is the head too."""
    seq_len: int = Field(default=128, ge=1, le=1_048_576)
    """Tokens a sequence."""

    @model_validator(mode="after")
    def _heads_divide(self) -> "GptModel":
        if self.hidden % self.heads:
            raise ValueError(f"hidden {self.hidden} does not divide by heads {self.heads}")
        return self

    @property
    def parameters(self) -> int:
        """How many parameters? 12 L H² + 13 L H for the blocks, embeddings tied to the head.

        A block: attention 4H² + 4H, MLP 8H² + 5H, two norms 4H. Source: Radford et al. 2019
        (GPT-2), counted; tests/probes compares it with the built model.
        """
        blocks = self.layers * (12 * self.hidden**2 + 13 * self.hidden)
        embeddings = (self.vocabulary + self.seq_len) * self.hidden
        return blocks + embeddings + 2 * self.hidden

    @property
    def flops_per_token(self) -> float:
        """Model FLOPs a token, forward and backward: 6N + 12·L·H·Q·T, H·Q being the hidden size.

        Source: Chowdhery et al. 2022 (PaLM), appendix B; N without the position embedding,
        which multiplies nothing.
        """
        weights = self.parameters - self.seq_len * self.hidden
        return 6.0 * weights + 12.0 * self.layers * self.hidden * self.seq_len


class ModelMessages(Spec):
    """The sizes that training this model really sends, one of each."""

    model: GptModel
    """Whose training."""
    strategy: Strategy = "ddp"
    """ddp: gradient buckets. fsdp: each unit's parameters (a block, and the rest)."""
    bucket_cap_bytes: SizeBytes | None = None
    """As in a training: null is DDP's own choice. Buckets are cut by their float32 bytes."""
    dtype: DataType = "float32"
    """Of what is sent: bfloat16 halves every message."""

    @model_validator(mode="after")
    def _buckets_are_ddps(self) -> "ModelMessages":
        if self.bucket_cap_bytes is not None and self.strategy != "ddp":
            raise placed_error("`bucket_cap_bytes` is DDP's", ("bucket_cap_bytes",))
        return self

    def sizes_bytes(self) -> tuple[int, ...]:
        """Distinct sizes, smallest first."""
        if self.strategy == "ddp":
            messages = ddp_buckets(gradient_elements(self.model), self.bucket_cap_bytes)
        else:
            messages = fsdp_units(self.model)
        return tuple(sorted({DATA_TYPE_BYTES[self.dtype] * elements for elements in messages}))


class WorkloadBase(Spec):
    """What each workload has: a name, and the networks it runs on (all, when not named)."""

    networks: tuple[Name, ...] | None = Field(default=None, min_length=1)
    """Those it runs on, by name; null: all."""
    environment: EnvironmentVariables = Field(default_factory=dict)
    """Variables for its ranks; they win over the network's and the experiment's."""

    planned: ClassVar[dict[str, str]] = {"trace": "profiler traces", "storage": "storages"}


class CollectivesWorkload(WorkloadBase):
    """How fast are the collectives themselves, by size? Definitions as in nccl-tests.

    Sizes are the total S of nccl-tests: count x type for all_reduce, broadcast, reduce and
    send_recv, count x ranks x type for all_gather, reduce_scatter and all_to_all; each is rounded
    down to what the ranks divide evenly. Broadcast and reduce have rank 0 as their root; send_recv
    is a ring, in which each rank sends to the next while it receives from the one before.
    """

    kind: Literal["collectives"]
    """What it is read as."""
    name: Name = "collectives"
    """In labels and selectors."""
    ops: tuple[CollectiveOp, ...] = Field(
        default=("all_reduce", "all_gather", "reduce_scatter"), min_length=1
    )
    """Which collectives, as torch.distributed names them."""
    sizes: SizeRange | ModelMessages | tuple[SizeBytes, ...] = SizeRange(
        from_bytes=2**10, to_bytes=2**26
    )
    """A list, a range, or those of a model's training."""
    dtypes: tuple[DataType, ...] = Field(default=("float32",), min_length=1)
    """Each op and size is measured in each."""
    warm_up_iterations: int = Field(default=2, ge=1, le=1000)
    """Of each size, not measured."""
    min_iterations: int = Field(default=5, ge=2, le=100_000)
    """Of each size, however long they take."""
    max_iterations: int = Field(default=100, ge=2, le=100_000)
    """Of each size, however short they are."""
    budget_s: TimeS = 0.5
    """Time to spend on each size: its iterations are this over the warm-up's time, bounded."""
    check: bool = True
    """Compare each size's result with what it must be, on every rank."""

    cuda_graphs: bool = False
    """Capture the iterations of each size in a CUDA graph and replay it: the GPU's time without
    the host's calls. Only on GPUs over NCCL; at most 256 iterations."""
    pairwise: bool = False
    """Instead of `ops`: send each size from every node to every other, one pair and direction at a
    time, so that one bad link shows. On one node: from every rank."""
    engine: Engine = "torch"
    """Who runs them: torch.distributed as training does, or nccl-tests where it is installed."""

    @field_validator("ops", "dtypes")
    @classmethod
    def _no_twins(cls, values: tuple[str, ...]) -> tuple[str, ...]:
        for i, value in enumerate(values):
            if value in values[:i]:
                raise ValueError(f"`{value}` stands twice")
        return values

    @field_validator("sizes", mode="before")
    @classmethod
    def _plain_list(cls, sizes: Any) -> Any:
        if isinstance(sizes, (list, tuple)) and not sizes:
            raise ValueError("at least one size")
        return sizes

    @model_validator(mode="after")
    def _iterations_in_order(self) -> "CollectivesWorkload":
        if self.min_iterations > self.max_iterations:
            raise ValueError("`min_iterations` is larger than `max_iterations`")
        if self.cuda_graphs and self.min_iterations > MOST_CAPTURED_ITERATIONS:
            message = f"a CUDA graph holds at most {MOST_CAPTURED_ITERATIONS} iterations"
            raise placed_error(message, ("min_iterations",))
        return self

    @model_validator(mode="after")
    def _pairs_are_alone(self) -> "CollectivesWorkload":
        """A plan's file names every key, so that `ops` at its default has not been asked for."""
        if self.pairwise and self.ops != type(self).model_fields["ops"].default:
            hint = "two workloads, with a name each"
            raise placed_error("`pairwise` stands instead of `ops`", ("ops",), hint)
        if self.pairwise and self.cuda_graphs:
            message = "a pair's messages are not captured: `cuda_graphs` is for `ops`"
            raise placed_error(message, ("cuda_graphs",))
        if self.pairwise and self.engine != "torch":
            message = "nccl-tests has no messages between two ranks alone: `engine: torch` has"
            raise placed_error(message, ("engine",))
        return self

    def sizes_bytes(self) -> tuple[int, ...]:
        match self.sizes:
            case SizeRange() as sizes:
                return sizes.expand()
            case ModelMessages() as messages:
                return messages.sizes_bytes()
            case sizes:
                return sizes


class JsonLines(Spec):
    """A file of JSON objects, one a line."""

    jsonl: str = Field(min_length=1)
    """Its path, starting at the experiment file's folder, as that of `text` does."""
    field: str = Field(default="text", min_length=1)
    """The key of the text; dots step into objects."""


class HubDataset(Spec):
    """A data set of the Hugging Face hub, or a folder that `datasets` saved; needs
    `pip install 'broadgauge[data]'`."""

    dataset: str = Field(min_length=1)
    """A folder of `save_to_disk`, starting at the experiment file's folder; or a name that has been
    loaded on this machine before: ranks read the library's cache and fetch nothing."""
    subset: str | None = None
    """The hub's configuration, such as `wikitext-2-raw-v1`."""
    split: str = Field(default="train", min_length=1)
    """Which part of it."""
    field: str = Field(default="text", min_length=1)
    """The column of the text; dots step into objects."""


class TrainWorkload(WorkloadBase):
    """A real data-parallel training of a small GPT on real text, and the same step with
    communication off."""

    kind: Literal["train"]
    """What it is read as."""
    name: Name = "train"
    """In labels and selectors."""
    strategy: Strategy = "ddp"
    """ddp: every rank has the whole model. fsdp: parameters, gradients and optimizer are sharded
    over all ranks (FSDP2, `fully_shard` of each block)."""
    model: GptModel = GptModel()
    """Its shape."""
    batch_per_rank: int = Field(default=2, ge=1, le=65_536)
    """Sequences a rank and micro-batch."""
    accumulation: int = Field(default=1, ge=1, le=4096)
    """Micro-batches a step; gradients are reduced with the last one only. FSDP keeps the whole
    model's gradients until then."""
    gradient_dtype: DataType = "float32"
    """What gradients are reduced in: bfloat16 halves their bytes, and rounds them. FSDP also adds
    up micro-batches in it. Source: torch 2.11 MixedPrecisionPolicy, `reduce_dtype`."""
    reshard_after_forward: bool = True
    """FSDP: free a unit's parameters after its forward, and gather them again for its backward;
    `false`: keep them until the step's last backward."""
    steps: int = Field(default=12, ge=4, le=1_000_000)
    """Measured steps of each kind (communication on, communication off)."""
    warm_up_steps: int = Field(default=3, ge=1, le=10_000)
    """Not measured."""
    block_steps: int = Field(default=4, ge=1, le=10_000)
    """Steps in a row before the trial changes between communication on and off."""
    communication_off: bool = True
    """Also measure the step whose collectives send nothing and copy locally: gives
    `network_cost_s`."""
    dtype: DataType = "float32"
    """Of the arithmetic: autocast with DDP; with FSDP units are gathered and computed in it. The
    parameters that the optimizer updates stay float32."""
    bucket_cap_bytes: SizeBytes | None = None
    """DDP's bucket size; null: DDP's own choice, a first bucket of 1 MiB and then 25 MiB. (Any
    number, 25 MiB too, turns the small first bucket off.) Source: torch 2.11
    DistributedDataParallel, `bucket_cap_mb`."""
    learning_rate: float = Field(default=3e-4, gt=0, le=10)
    """Of AdamW."""
    text: str | None = None
    """A text file of yours; null: the sources of Python's standard library, byte by byte."""
    data: JsonLines | HubDataset | None = None
    """Instead of `text`: records, each with a text."""

    planned: ClassVar[dict[str, str]] = WorkloadBase.planned | {"compile": "torch.compile"}

    @model_validator(mode="after")
    def _one_source(self) -> "TrainWorkload":
        if self.text is not None and self.data is not None:
            raise ValueError("one of `text` and `data`, not both")
        return self

    @field_validator("strategy", mode="before")
    @classmethod
    def _refuse_planned_strategies(cls, strategy: Any) -> Any:
        if strategy in PLANNED_STRATEGIES:
            raise ValueError(not_yet(str(strategy), "a training strategy"))
        return strategy


class CommandMetric(Spec):
    """Which number in the command's output is measured? Exactly one of `regex` and `json_key`."""

    name: Annotated[str, Field(pattern=METRIC_NAME_PATTERN, max_length=64)]
    """Ends with its unit (specs/metrics.py): `step_time_s`, `images_per_s`; or is a `loss`."""
    regex: str | None = None
    """Its first group is the number; each match is one sample."""
    json_key: str | None = None
    """The key of a number in lines that are JSON objects; dots step into objects."""
    lower_is_better: bool = True
    """Which direction comparisons call better."""
    skip_first: int = Field(default=0, ge=0, le=1_000_000)
    """Samples of the warm-up, left out."""

    @field_validator("name")
    @classmethod
    def _ends_with_its_unit(cls, name: str) -> str:
        if unit_of(name) is None:
            endings = ", ".join(f"`{suffix}`" for suffix in UNIT_SUFFIXES)
            raise ValueError(f"a metric's name ends with its unit ({endings}) or with `loss`")
        return name

    @field_validator("regex")
    @classmethod
    def _compiles(cls, regex: str | None) -> str | None:
        if regex is not None:
            try:
                groups = re.compile(regex).groups
            except re.error as error:
                raise ValueError(f"not a regular expression: {error}") from error
            if groups < 1:
                raise ValueError("the regular expression needs one group, the number")
        return regex

    @model_validator(mode="after")
    def _one_source(self) -> "CommandMetric":
        if (self.regex is None) == (self.json_key is None):
            raise ValueError("exactly one of `regex` and `json_key`")
        return self


class CommandWorkload(WorkloadBase):
    """The user's own script under torchrun, one torchrun a node."""

    kind: Literal["command"]
    """What it is read as."""
    name: Name = "command"
    """In labels and selectors."""
    command: tuple[str, ...] = Field(min_length=1)
    """The script and its arguments, as torchrun takes them: `[train.py, --epochs, "1"]`."""
    working_directory: str | None = None
    """Where the command runs; null: the experiment file's folder."""
    metrics: tuple[CommandMetric, ...] = Field(min_length=1, max_length=64)
    """What is read from its output."""
    prepare: tuple[str, ...] | None = Field(default=None, min_length=1)
    """Runs once on the host, before any node exists: downloads belong here."""

    @field_validator("metrics")
    @classmethod
    def _names_differ(cls, metrics: tuple[CommandMetric, ...]) -> tuple[CommandMetric, ...]:
        names = [metric.name for metric in metrics]
        for i, name in enumerate(names):
            if name in names[:i]:
                raise ValueError(f"two metrics are named `{name}`")
            if name in MEASURED_BY_US:
                raise ValueError(f"`{name}` is what Broadgauge itself counts: choose another name")
        return metrics


Workload = Annotated[
    CollectivesWorkload | TrainWorkload | CommandWorkload, Field(discriminator="kind")
]
