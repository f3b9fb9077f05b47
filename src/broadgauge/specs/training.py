"""What is trained, how, and on which text?"""

from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from broadgauge.messages.vocabulary import ActivationCheckpointing
from broadgauge.specs.base import Name, Spec, placed_error
from broadgauge.specs.checkpoints import Checkpoints
from broadgauge.specs.gpt import DataType, GptModel, Strategy
from broadgauge.specs.lora import Lora
from broadgauge.specs.prepared_data import Packing, PreparedData, SynthesizedData
from broadgauge.specs.tracing import Tracing
from broadgauge.specs.trained_model import TrainedModel
from broadgauge.specs.units import SizeBytes
from broadgauge.specs.workload_base import WorkloadBase


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
    """Split of the dataset, such as `train`."""
    field: str = Field(default="text", min_length=1)
    """The column of the text; dots step into objects."""


class TrainWorkload(WorkloadBase):
    """A real data-parallel training of a GPT or a Llama on real text, and the same step with
    communication off."""

    kind: Literal["train"]
    """The kind of workload: says which keys the entry has."""
    name: Name = "train"
    """Name in tables, labels and selectors."""
    strategy: Strategy = "ddp"
    """ddp: every rank has the whole model. fsdp: parameters, gradients and optimizer are sharded
    over all ranks (FSDP2, `fully_shard` of each block). hsdp: over the ranks of a node, and each
    node has a replica."""
    shard_ranks: int | None = Field(default=None, ge=1, le=65_536)
    """HSDP: ranks that share a replica; null: those of a node."""
    model: TrainedModel = GptModel()
    """Shape of the model that is trained: a GPT, or with `kind: llama` a Llama."""
    lora: Lora | None = None
    """Train adapters instead of the weights; null: all weights are trained."""
    compile: bool = False
    """torch.compile of each block, and of the head with its loss. What compiling takes is told as
    `compile_s` and is in no measured step."""
    activation_checkpointing: ActivationCheckpointing = "none"
    """What a block keeps from its forward for its backward. none: everything. selective: the
    results of matrix products and attention, the rest is computed again. full: its input alone."""
    cpu_offload: bool = False
    """FSDP and HSDP: parameters, gradients and the optimizer live in the host's memory, and the
    optimizer's step runs there."""
    batch_per_rank: int = Field(default=2, ge=1, le=65_536)
    """Sequences per rank and micro-batch."""
    accumulation: int = Field(default=1, ge=1, le=4096)
    """Micro-batches a step; gradients are reduced with the last one only. FSDP keeps the whole
    model's gradients until then."""
    reduce_each_micro_batch: bool = False
    """FSDP and HSDP: reduce gradients with every micro-batch of a step, as InstructLab does. A rank
    then keeps a shard of them instead of the whole model's, and sends more."""
    gradient_dtype: DataType = "float32"
    """What gradients are reduced in: bfloat16 halves their bytes, and rounds them. FSDP also adds
    up micro-batches in it. Source: torch 2.11 MixedPrecisionPolicy, `reduce_dtype`."""
    reshard_after_forward: bool = True
    """FSDP: free a unit's parameters after its forward, and gather them again for its backward;
    `false`: keep them until the step's last backward."""
    steps: int = Field(default=12, ge=4, le=1_000_000)
    """Measured steps of each kind (communication on, communication off)."""
    warm_up_steps: int = Field(default=3, ge=1, le=10_000)
    """Steps before timing begins."""
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
    """Learning rate of AdamW."""
    learning_rate_warm_up_steps: int = Field(default=0, ge=0, le=1_000_000)
    """Steps, warm-up included, over which the learning rate rises from zero, linearly."""
    text: str | None = None
    """A text file of yours; null: the sources of Python's standard library, byte by byte."""
    data: JsonLines | HubDataset | PreparedData | SynthesizedData | None = None
    """Instead of `text`: records, each with a text, samples that are tokenised already, or made-up
    ones."""
    packing: Packing | None = None
    """Of prepared or synthesized samples: whole samples by a budget of tokens, in the place of
    `batch_per_rank` and `accumulation`; null: sequences of `seq_len` tokens, cut anywhere."""
    epoch_samples: int | None = Field(default=None, ge=1, le=10**12)
    """Samples of an epoch: gives `epoch_time_s`. null: none, or with `packing` the prepared set's.
    """
    epochs: int = Field(default=1, ge=1, le=100_000)
    """Epochs of the whole training: gives `completion_time_s`."""
    checkpoints: Checkpoints | None = None
    """Save model and optimizer every so many measured steps, on a storage; null: never."""
    trace: Tracing | None = None
    """Run some steps more under PyTorch's profiler, after the timed ones; null: none."""

    has_steps: ClassVar[bool] = True

    @property
    def tracing(self) -> Tracing | None:
        return self.trace

    @property
    def needs_storage(self) -> bool:
        return self.checkpoints is not None

    @property
    def saving(self) -> Checkpoints | None:
        return self.checkpoints

    @property
    def words_of_files(self) -> tuple[str, ...]:
        lines = self.data.jsonl if isinstance(self.data, JsonLines) else None
        return tuple(word for word in (self.text, lines) if word is not None)

    @property
    def arithmetic_dtype(self) -> DataType:
        return self.dtype

    @model_validator(mode="after")
    def _one_source(self) -> "TrainWorkload":
        if self.text is not None and self.data is not None:
            raise ValueError("one of `text` and `data`, not both")
        return self

    @model_validator(mode="after")
    def _packs_prepared_samples(self) -> "TrainWorkload":
        if self.packing is None:
            return self
        if not isinstance(self.data, PreparedData | SynthesizedData):
            raise ValueError("`packing` is of `data: {prepared: FOLDER}` or `{synthesized: …}`")
        for key in ("batch_per_rank", "accumulation", "epoch_samples"):
            if getattr(self, key) != type(self).model_fields[key].default:
                raise ValueError(f"`packing` decides `{key}`: one of them")
        return self

    @model_validator(mode="after")
    def _takes_synthesized_samples(self) -> "TrainWorkload":
        if isinstance(self.data, SynthesizedData):
            samples, seq_len = self.data.synthesized, self.model.seq_len
            longest = samples.longest(seq_len)
            if not samples.mean_tokens <= longest <= seq_len:
                raise ValueError(
                    f"`synthesized`: mean_tokens ({samples.mean_tokens}) <= max_tokens ({longest}) "
                    f"<= the model's seq_len ({seq_len})"
                )
        return self

    @field_validator("strategy", mode="before")
    @classmethod
    def _lora_is_beside(cls, strategy: Any) -> Any:
        if strategy == "lora":
            raise ValueError("LoRA stands beside it: `lora: {rank: 16}`")
        return strategy

    @model_validator(mode="after")
    def _keys_go_together(self) -> "TrainWorkload":
        if self.shard_ranks is not None and self.strategy != "hsdp":
            raise placed_error("`shard_ranks` is HSDP's", ("shard_ranks",), "`strategy: hsdp`")
        if self.cpu_offload and self.strategy == "ddp":
            message = "`cpu_offload` is FSDP's and HSDP's: DDP keeps everything on its device"
            raise placed_error(message, ("cpu_offload",), "`strategy: fsdp`")
        if self.reduce_each_micro_batch and self.strategy == "ddp":
            message = "`reduce_each_micro_batch` is FSDP's and HSDP's"
            raise placed_error(message, ("reduce_each_micro_batch",), "`strategy: fsdp`")
        if self.checkpoints is not None and self.checkpoints.every_steps > self.steps:
            message = f"`every_steps`: no checkpoint is saved within {self.steps} measured steps"
            raise placed_error(message, ("checkpoints", "every_steps"), f"{self.steps} or fewer")
        known = tuple(self.model.shape.linears)
        for target in (self.lora.targets if self.lora else None) or ():
            if target not in known:
                message = f"`targets`: a {self.model.kind}'s block has no `{target}`"
                raise placed_error(message, ("lora", "targets"), f"it has {', '.join(known)}")
        return self
