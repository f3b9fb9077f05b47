"""Which training is asked about? A model, how it is split and trained, and the cluster under it."""

import functools
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from broadgauge.catalog.gpus import Gpu, find_gpu_named, known_gpus
from broadgauge.specs.workloads.workload import CollectiveOp

Architecture = Literal["decoder", "encoder", "moe"]
Precision = Literal["fp32", "tf32", "fp16", "bf16", "fp8"]
Transport = Literal[
    "none", "infiniband", "roce", "efa", "sriov-tcp", "tcp", "virtio", "overlay", "unknown"
]
SplitStrategy = Literal["ddp", "fsdp", "hsdp", "megatron"]
Op = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv"]
"""Collectives, named and sized as nccl-tests does."""
Recompute = Literal["none", "selective", "full", "unknown"]
RDMA_TRANSPORTS: frozenset[Transport] = frozenset({"infiniband", "roce", "efa"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """What is known of a model. `None`: not published, so inferred where it matters."""

    name: str
    architecture: Architecture = "decoder"
    layers: int
    hidden: int
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    """Of one head; None: hidden / heads."""
    ffn_hidden: int | None = None
    gated_mlp: bool | None = None
    vocabulary: int
    tied_embeddings: bool | None = None
    """The head is the embedding's own table."""
    params: float
    """All parameters, experts included."""
    active_params: float
    """Those that a token passes; equal to `params` unless the model has experts."""
    num_experts: int = 1
    layer_params: float | None = None
    """Of one layer, where it was counted; None: what the tables leave, shared out over the layers.
    """
    adapter_params: float | None = None
    """Of LoRA in one layer, where it was counted and is trained; None: a usual share."""
    adapter_rank: float | None = None
    """Rows of each A, where they were counted."""
    adapter_inputs: float | None = None
    """Columns of all A of one layer together, where they were counted."""

    @property
    def is_mixture(self) -> bool:
        """Of experts, be their number published or not."""
        return self.architecture == "moe" or self.num_experts > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveCurve:
    """A measured collective: how long it takes by size. Takes precedence over any model."""

    op: CollectiveOp
    """all_reduce, all_gather, reduce_scatter, … as nccl-tests names and sizes them."""
    nodes: int
    ranks_per_node: int
    message_bytes: tuple[float, ...]
    """Ascending."""
    time_s: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """What joins the nodes, and what is known of its rate."""

    name: str = ""
    transport: Transport = "none"
    node_gbps: float | None = None
    """Nominal, of all NICs of a node, one direction; None: not stated."""
    measured_node_gbyte_per_s: float | None = None
    """What a collective was seen to carry per node and direction; None: not measured."""
    latency_s: float | None = None
    """Of one message between two nodes; None: the transport's prior."""
    stated_node_gbyte_per_s: float | None = None
    """What the network's own entry says that collectives carry per node; None: it says nothing
    that its transport's prior doesn't."""
    stated_ring_gbyte_per_s: float | None = None
    """What one communicator carries at most, where the entry says so."""
    stated_spread_ratio: float | None = None
    """By how much the stated rate may be off, either way."""
    curves: tuple[CollectiveCurve, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingCase:
    """One question: how long does a step take? Hashable, and it does no I/O.

    data_parallel × tensor_parallel × pipeline_parallel × context_parallel is nodes × gpus_per_node.
    """

    name: str = ""
    model: ModelShape
    gpu: str
    """As in the catalog."""
    own_gpu: Gpu | None = None
    """The facts of that name where they are the user's own; None: the shipped catalog's."""
    nodes: int = 1
    gpus_per_node: int = 1
    fabric: Fabric = Fabric()
    strategy: SplitStrategy = "ddp"
    data_parallel: int = 1
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    virtual_stages: int = 1
    context_parallel: int = 1
    expert_parallel: int = 1
    sequence_parallel: bool = False
    """Megatron's: norms and dropouts are split over the tensor-parallel ranks."""
    zero_stage: int | None = None
    seq_len: int
    global_batch: float
    """Sequences a step, all ranks together."""
    micro_batch: float
    """Sequences a rank and pass."""
    precision: Precision = "bf16"
    """Of the arithmetic."""
    gradient_bytes: float | None = None
    """Bytes of one reduced gradient element; None: as the framework does by default."""
    recompute: Recompute = "none"
    recomputed_ratio: float = 0.0
    """Of the layers, those recomputed whole beside what `recompute` says; 1 is as `full`."""
    flash_attention: bool = True
    compiled: bool = False
    lora: bool = False
    quantized_base: bool = False
    """int4 weights, dequantised at each pass."""
    cpu_offload: bool = False
    framework: str = "torch"
    """As in catalog/frameworks.yaml; an unknown one gets the class prior and its wide interval."""
    reshard_after_forward: bool = True
    sync_every_micro_batch: bool | None = None
    """None: the strategy's default (DDP no, FSDP yes)."""
    bucket_bytes: float | None = None
    """DDP; None: 1 MiB, then 25 MiB."""
    data_s: float = 0.0
    """Stall of a step for its data, after what loaders hide."""
    checkpoint_s: float = 0.0
    """Stall of a checkpoint, spread over the steps between two."""

    @property
    def gpu_entry(self) -> Gpu:
        """What is known of its GPU. Raises InputError where that is nothing."""
        return find_gpu_named(self.gpu) if self.own_gpu is None else self.own_gpu

    @property
    def gpus(self) -> int:
        """In all."""
        return self.nodes * self.gpus_per_node

    @property
    def micro_batches(self) -> float:
        """Passes a rank makes each step: gradient accumulation."""
        return max(1.0, self.global_batch / (self.micro_batch * self.data_parallel))


@functools.cache
def own_gpu_of(gpu: Gpu) -> Gpu | None:
    """What a case carries of a GPU: nothing where the shipped catalog has the same."""
    return None if gpu in known_gpus() else gpu


class Bottleneck(StrEnum):
    """What a step mostly waits for: the regime whose residuals give the interval."""

    COMPUTE = "compute"
    MEMORY = "memory"
    LAUNCH = "launch"
    NETWORK = "network"
    INTRA_NODE = "intra_node"
    PIPELINE = "pipeline"
    STORAGE = "storage"
