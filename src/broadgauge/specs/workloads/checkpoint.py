"""Which checkpoint is saved: of which model, spread how, in which format?"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema, model_validator

from broadgauge.messages.storage import Background, ModelFormat, StateDict
from broadgauge.specs.base import placed_error
from broadgauge.specs.workloads.gpt import GptModel
from broadgauge.specs.workloads.storage import StorageWorkload
from broadgauge.specs.workloads.trained_model import TrainedModel

PARAMETER_BYTES = 4
"""Weights are kept in float32, and so are AdamW's two moments of each."""


def _from_boolean(value: Any) -> Any:
    """`true` is the thread."""
    if isinstance(value, bool):
        return "thread" if value else None
    return value


def _to_boolean(value: Background | None) -> bool | str:
    """As run folders hold it, and keys of cases are made of it."""
    return value if value == "process" else value is not None


Asynchronous = Annotated[
    Background | None,
    BeforeValidator(_from_boolean),
    PlainSerializer(_to_boolean),
    WithJsonSchema({"enum": [False, True, "thread", "process"]}),
]


class CheckpointWorkload(StorageWorkload):
    """A training's state is saved as a training saves it, until it is durable."""

    phase: Literal["checkpoint"]
    """Which phase: says which further keys the entry has."""
    model: TrainedModel = GptModel()
    """Whose state is saved, as in a training: by a known name or by numbers. Its weights are
    random, and it is not trained."""
    optimizer_state: bool = True
    """AdamW's two moments of each parameter, too: three times the bytes."""
    strategy: Literal["ddp", "fsdp"] = "fsdp"
    """How the ranks hold the state: `ddp` each all of it, `fsdp` each a shard."""
    format: ModelFormat = "distributed"
    """distributed: torch.distributed.checkpoint, each rank a file and one of metadata. torch:
    torch.save. safetensors: weights by safetensors, the optimizer's state beside them by
    torch.save."""
    state_dict: StateDict | None = None
    """full: gathered to rank 0, which alone writes. sharded: each rank writes what it holds.
    null: `sharded` of a distributed checkpoint, else `full`."""
    asynchronous: Asynchronous = None
    """Of a distributed checkpoint: training goes on when the state is copied into the host's
    memory, and it is written (`async_save`) by a `thread` of the rank, as `true` says, or by a
    `process` beside it. false: training waits."""

    @model_validator(mode="after")
    def _formats_can_do_it(self) -> "CheckpointWorkload":
        if self.format == "distributed":
            if self.state_dict == "full":
                raise placed_error(
                    "a distributed checkpoint is never gathered",
                    ("state_dict",),
                    "leave `state_dict` out, or `format: torch`",
                )
            return self
        if self.asynchronous:
            message = f"`format: {self.format}` saves nothing in the background"
            raise placed_error(message, ("asynchronous",), "`format: distributed`")
        if self.state_dict == "sharded" and self.strategy == "ddp":
            raise placed_error(
                "with `strategy: ddp` no rank holds a shard: each would write all of it",
                ("state_dict",),
                "`strategy: fsdp`, or `format: distributed`, whose ranks share the writing",
            )
        return self

    @property
    def resolved_state_dict(self) -> StateDict:
        if self.state_dict is not None:
            return self.state_dict
        return "sharded" if self.format == "distributed" else "full"

    @property
    def state_bytes(self) -> int:
        """Of the whole state. A file has names and sizes beside it."""
        copies = 3 if self.optimizer_state else 1
        return self.model.shape.parameters * PARAMETER_BYTES * copies

    @property
    def model_in_words(self) -> str | None:
        return self.model.named_in_words

    def node_bytes(self, world_size: int, nodes: int) -> int:
        """One rank writes what is gathered."""
        is_shared_out = self.resolved_state_dict == "sharded"
        return self.files_bytes(world_size) // (nodes if is_shared_out else 1)

    @property
    def writes(self) -> int:
        return self.repetitions + 1

    @property
    def reads(self) -> int:
        """The first save."""
        return 1

    @property
    def model_bytes(self) -> int:
        return self.state_bytes

    @property
    def moved_bytes(self) -> int:
        is_gathered = self.strategy == "fsdp" and self.resolved_state_dict == "full"
        return self.state_bytes if is_gathered else 0

    def files_bytes(self, world_size: int) -> int:
        """However many ranks there are, the state is saved once."""
        del world_size
        return self.state_bytes
