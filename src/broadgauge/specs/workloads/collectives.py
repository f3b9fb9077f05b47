"""Which collectives are measured, at which sizes, by whom?"""

import math
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from broadgauge.messages.strategies import STRATEGIES
from broadgauge.messages.vocabulary import MOST_CAPTURED_ITERATIONS, CollectiveOp, Engine
from broadgauge.specs.base import Name, Spec, placed_error
from broadgauge.specs.units import SizeBytes, TimeS
from broadgauge.specs.workloads.common import WorkloadBase
from broadgauge.specs.workloads.gpt import DATA_TYPE_BYTES, DataType, Strategy
from broadgauge.specs.workloads.model_messages import ddp_buckets, fsdp_units, gradient_elements
from broadgauge.specs.workloads.trained_model import TrainedModel

MAX_SIZES = 1000
"""A typing error in `factor` must not expand for ever; the plan bounds the rows of a record."""


class SizeRange(Spec):
    """Message sizes from `from_bytes` to `to_bytes`, each `factor` times the one before."""

    from_bytes: SizeBytes
    """Smallest message size."""
    to_bytes: SizeBytes
    """Largest message size; left out where the factor passes it by."""
    factor: float = Field(default=4, gt=1, le=1024)
    """Ratio of each size to the one before."""

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


class ModelMessages(Spec):
    """The sizes that training this model really sends, one of each."""

    model: TrainedModel
    """Shape of the model whose training's messages are sent."""
    strategy: Strategy = "ddp"
    """ddp: gradient buckets. fsdp, hsdp: each unit's parameters (a block, and the rest)."""
    bucket_cap_bytes: SizeBytes | None = None
    """DDP's bucket size; null: DDP's own choice. Buckets are cut by their float32 bytes."""
    dtype: DataType = "float32"
    """Element type of what is sent: bfloat16 halves every message."""

    @model_validator(mode="after")
    def _buckets_are_ddps(self) -> "ModelMessages":
        if self.bucket_cap_bytes is not None and self.strategy != "ddp":
            raise placed_error("`bucket_cap_bytes` is DDP's", ("bucket_cap_bytes",))
        return self

    def sizes_bytes(self) -> tuple[int, ...]:
        """Distinct sizes, smallest first."""
        if STRATEGIES[self.strategy].is_sharded:
            messages = fsdp_units(self.model)
        else:
            messages = ddp_buckets(gradient_elements(self.model), self.bucket_cap_bytes)
        return tuple(sorted({DATA_TYPE_BYTES[self.dtype] * elements for elements in messages}))


class CollectivesWorkload(WorkloadBase):
    """How fast are the collectives themselves, by size? Definitions as in nccl-tests.

    Sizes are the total S of nccl-tests: count x type for all_reduce, broadcast, reduce and
    send_recv, count x ranks x type for all_gather, reduce_scatter and all_to_all; each is rounded
    down to what the ranks divide evenly. Broadcast and reduce have rank 0 as their root; send_recv
    is a ring, in which each rank sends to the next while it receives from the one before.
    """

    kind: Literal["collectives"]
    """The kind of workload: says which keys the entry has."""
    name: Name = "collectives"
    """Name in tables, labels and selectors."""
    ops: tuple[CollectiveOp, ...] = Field(
        default=("all_reduce", "all_gather", "reduce_scatter"), min_length=1
    )
    """Which collectives, as torch.distributed names them."""
    sizes: SizeRange | ModelMessages | tuple[SizeBytes, ...] = SizeRange(
        from_bytes=2**10, to_bytes=2**26
    )
    """Message sizes: a list, a range, or those that a model's training sends."""
    dtypes: tuple[DataType, ...] = Field(default=("float32",), min_length=1)
    """Element types; each op and size is measured in each of them."""
    warm_up_iterations: int = Field(default=2, ge=1, le=1000)
    """Iterations of each size before timing begins."""
    min_iterations: int = Field(default=5, ge=2, le=100_000)
    """Timed iterations of each size, at least; however long they take."""
    max_iterations: int = Field(default=100, ge=2, le=100_000)
    """Timed iterations of each size, at most; however short they are."""
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

    only_communicates: ClassVar[bool] = True

    @property
    def shows_link_rate(self) -> bool:
        return not self.pairwise

    @property
    def all_reduce_bytes(self) -> int:
        is_one = self.shows_link_rate and "all_reduce" in self.ops
        return max(self.sizes_bytes()) if is_one else 0

    @property
    def model_in_words(self) -> str | None:
        return self.sizes.model.named_in_words if isinstance(self.sizes, ModelMessages) else None

    @property
    def measured_by(self) -> Engine:
        return self.engine

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
