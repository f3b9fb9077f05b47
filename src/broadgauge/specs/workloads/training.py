"""What is trained, how, and on which text?"""

from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from broadgauge.messages.adapters import Adapters, model_flops_per_token, trained_parameters
from broadgauge.messages.strategies import STRATEGIES
from broadgauge.messages.vocabulary import ActivationCheckpointing, AttentionName
from broadgauge.specs.base import Name, Spec, placed_error
from broadgauge.specs.units import SizeBytes, show_parameters
from broadgauge.specs.workloads.common import WorkloadBase
from broadgauge.specs.workloads.gpt import DataType, GptModel, Strategy
from broadgauge.specs.workloads.lora import Lora
from broadgauge.specs.workloads.prepared_data import (
    Packing,
    PreparedData,
    SyntheticData,
    check_samples,
)
from broadgauge.specs.workloads.trained_model import TrainedModel


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
    """A real data-parallel training of a GPT or a Llama-like model on real text, and the same step
    with communication off."""

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
    """Shape of the model that is trained: by the name of a known one (`llama-3.1-8b`), by that and
    fewer layers, or by numbers: a GPT, or with `kind: llama` a Llama-like one."""
    compile: bool = False
    """torch.compile of each block, and of the head with its loss. What compiling takes is told as
    `compile_s` and is in no measured step."""
    lora: Lora | None = None
    """Train adapters in the place of the weights; null: all weights are trained."""
    attention: AttentionName = "sdpa"
    """sdpa: torch's choice of a fused kernel. flash: its flash attention, and nothing in its place
    where that can't be. eager: products, mask and softmax one by one, the matrix of scores among
    them."""
    activation_checkpointing: ActivationCheckpointing = "none"
    """What a block keeps from its forward for its backward. none: everything. selective: the
    results of matrix products and of attention; the rest is computed again. full: its input."""
    cpu_offload: bool = False
    """FSDP and HSDP: parameters, gradients and the optimizer's state live in the host's memory, and
    the optimizer's step runs there."""
    batch_per_rank: int = Field(default=2, ge=1, le=65_536)
    """Sequences per rank and micro-batch."""
    accumulation: int = Field(default=1, ge=1, le=4096)
    """Micro-batches a step; gradients are reduced with the last one only. FSDP keeps the whole
    model's gradients until then."""
    reduce_each_micro_batch: bool = False
    """FSDP and HSDP: reduce gradients with every micro-batch. A rank then keeps a shard of them
    in the place of the whole model's, and sends more."""
    gradient_dtype: DataType = "float32"
    """What gradients are reduced in: bfloat16 halves their bytes, and rounds them. FSDP also adds
    up micro-batches in it. Source: torch 2.11 MixedPrecisionPolicy, `reduce_dtype`."""
    reshard_after_forward: bool = True
    """FSDP and HSDP: free a unit's parameters after its forward, and gather them again for its
    backward; `false`: keep them until the step's last backward."""
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
    epoch_samples: int | None = Field(default=None, ge=1, le=10**12)
    """Samples of an epoch: gives `epoch_time_s` and `completion_time_s`. null: those of the set
    with `packing`, else not said."""
    epochs: int = Field(default=1, ge=1, le=100_000)
    """Epochs of the whole training, of which `steps` are run."""
    text: str | None = None
    """A text file of yours; null: the sources of Python's standard library, byte by byte."""
    data: JsonLines | HubDataset | PreparedData | SyntheticData | None = None
    """Instead of `text`: records, each with a text; samples that are tokens already
    (`{prepared: FOLDER}`), or made up (`{samples: 9872, mean_length: 1483}`)."""
    packing: Packing | None = None
    """Of prepared or made-up samples: whole ones by a budget of tokens, in the place of
    `batch_per_rank` and `accumulation`; null: sequences of `seq_len` tokens, cut anywhere."""

    has_steps: ClassVar[bool] = True

    @property
    def adapters(self) -> Adapters | None:
        """None: all weights are trained."""
        return None if self.lora is None else self.lora.adapters(self.model.shape)

    @property
    def trained_parameters(self) -> int:
        """How many have gradients?"""
        return trained_parameters(self.model.shape, self.adapters)

    def samples_per_step(self, world_size: int) -> int:
        """Of all ranks; of an epoch's last step of packed samples, what is left."""
        if self.packing is None:
            return self.batch_per_rank * self.accumulation * world_size
        return self.packing.effective_batch_size

    @property
    def flops_per_token(self) -> float:
        """Model FLOPs, forward and backward."""
        return model_flops_per_token(self.model.shape, self.adapters)

    @property
    def model_in_words(self) -> str | None:
        named = self.model.named_in_words
        if self.lora is None:
            return named
        trained = show_parameters(self.trained_parameters)
        whole = named or self.model.parameters_in_words
        return f"{whole}, LoRA of rank {self.lora.rank}: {trained} trained"

    @property
    def arithmetic_dtype(self) -> DataType:
        return self.dtype

    @model_validator(mode="after")
    def _one_source(self) -> "TrainWorkload":
        if self.text is not None and self.data is not None:
            raise ValueError("one of `text` and `data`, not both")
        return self

    @model_validator(mode="after")
    def _takes_samples_that_are_there(self) -> "TrainWorkload":
        check_samples(self, data=self.data, packing=self.packing, seq_len=self.model.seq_len)
        return self

    @model_validator(mode="after")
    def _groups_are_hsdps(self) -> "TrainWorkload":
        if self.shard_ranks is not None and self.strategy != "hsdp":
            raise placed_error("`shard_ranks` is HSDP's", ("shard_ranks",), "`strategy: hsdp`")
        return self

    @model_validator(mode="after")
    def _epochs_have_samples(self) -> "TrainWorkload":
        if self.epochs > 1 and self.epoch_samples is None and self.packing is None:
            raise placed_error(
                "`epochs` of how many samples?", ("epochs",), "`epoch_samples: 7473`"
            )
        return self

    @model_validator(mode="after")
    def _shards_what_it_says(self) -> "TrainWorkload":
        """What FSDP and HSDP alone can do."""
        of_shards = {
            "cpu_offload": self.cpu_offload,
            "reduce_each_micro_batch": self.reduce_each_micro_batch,
        }
        for key, is_asked in of_shards.items():
            if is_asked and not STRATEGIES[self.strategy].is_sharded:
                message = f"`{key}` needs a strategy that shards"
                raise placed_error(message, (key,), "`strategy: fsdp` or `hsdp`")
        return self

    @model_validator(mode="after")
    def _adapts_layers_of_its_model(self) -> "TrainWorkload":
        known = self.model.shape.linears
        targets = () if self.lora is None else self.lora.targets or ()
        for number, target in enumerate(targets):
            if target not in known:
                message = f"blocks of `kind: {self.model.kind}` have no linear layer `{target}`"
                if self.model.shape.is_mixture:
                    message = f"adapters are beside attention's layers in a mixture, not `{target}`"
                hint = f"one of {', '.join(f'`{name}`' for name in known)}"
                raise placed_error(message, ("lora", "targets", number), hint)
        return self

    @model_validator(mode="after")
    def _compiles_what_torch_can(self) -> "TrainWorkload":
        """What dropout drew can't be drawn again in graphs of any shape. Source: torch 2.11,
        "Node … was invalid, but is output", of `full` and of `selective`."""
        has_dropout = self.lora is not None and self.lora.dropout_ratio > 0
        recomputes = self.activation_checkpointing != "none"
        if self.compile and self.packing is not None and has_dropout and recomputes:
            raise placed_error(
                "torch 2.11 can't compile LoRA's dropout of packed samples where activations are "
                "computed again",
                ("compile",),
                "`activation_checkpointing: none`, `dropout_ratio: 0` or `compile: false`",
            )
        return self

    @model_validator(mode="after")
    def _compiles_what_torch_compiles(self) -> "TrainWorkload":
        """Source: torch 2.11, torch/_meta_registrations.py, `_meta_grouped_mm_common`."""
        if self.compile and self.model.shape.is_mixture and self.dtype != "bfloat16":
            message = "torch compiles a mixture of experts in bfloat16 only"
            raise placed_error(message, ("compile",), "`dtype: bfloat16`, or `compile: false`")
        return self

    @field_validator("strategy", mode="before")
    @classmethod
    def _lora_is_no_strategy(cls, strategy: Any) -> Any:
        if strategy == "lora":
            raise ValueError(
                "LoRA says what is trained, and goes with any strategy: `lora: {rank: 16}`"
            )
        return strategy
