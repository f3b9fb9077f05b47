"""What of many cases decides their memory? The same facts as arrays, unknown ones inferred."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from broadgauge.catalog.gpus import find_gpu_named
from broadgauge.predict.case import TrainingCase

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

GIB = 2.0**30
FULL_PRECISION = ("fp32", "tf32")
COPYING_FRAMEWORKS = ("megatron", "deepspeed", "nemo", "nvidia")
"""Parts of the names of those that keep 16-bit weights beside their fp32 master copies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryColumns:
    """One entry a case."""

    params: Array
    layers: Array
    hidden: Array
    heads: Array
    kv_ratio: Array
    """Key and value heads over heads."""
    ffn_hidden: Array
    """Of all experts that a token passes, together."""
    is_gated: Flags
    vocabulary: Array
    embeddings: Array
    """Parameters of the token embedding, and of the head where it has its own."""
    experts: Array
    """Parameters of all experts."""
    data: Array
    tensor: Array
    pipeline: Array
    virtual_stages: Array
    context: Array
    expert: Array
    nodes: Array
    gpus: Array
    has_sequence_parallel: Flags
    seq_len: Array
    micro_batch: Array
    micro_batches: Array
    zero_stage: Array
    """3 for FSDP and HSDP."""
    is_hybrid: Flags
    is_wrapped: Flags
    """DDP's and FSDP's fp32 weights, cast where they are used; else 16-bit weights with fp32
    masters, as Megatron and DeepSpeed keep them."""
    is_deepspeed: Flags
    element_bytes: Array
    """Of an activation."""
    gradient_bytes: Array
    """Of a stored gradient."""
    reduced_bytes: Array
    """Of a gradient on its way."""
    recompute: npt.NDArray[np.str_]
    has_flash: Flags
    is_lora: Flags
    is_quantized: Flags
    is_offloaded: Flags
    keeps_gathered: Flags
    """Sharded weights stay whole until the backward pass has used them."""
    keeps_gradients: Flags
    """Sharded, and gradients stay whole until the last micro-batch."""
    capacity_bytes: Array


def memory_columns(cases: Sequence[TrainingCase]) -> MemoryColumns:
    """The columns of these cases. Raises InputError for a GPU that the catalog does not know."""

    def floats(of: Callable[[TrainingCase], float]) -> Array:
        return np.fromiter(map(of, cases), np.float64, len(cases))

    def flags(of: Callable[[TrainingCase], bool]) -> Flags:
        return np.fromiter(map(of, cases), np.bool_, len(cases))

    shapes = {case.model: _shape(case) for case in cases}
    capacities = {gpu: find_gpu_named(gpu).memory_gib * GIB for gpu in {c.gpu for c in cases}}
    return MemoryColumns(
        params=floats(lambda c: c.model.params),
        layers=floats(lambda c: c.model.layers),
        hidden=floats(lambda c: c.model.hidden),
        heads=floats(lambda c: shapes[c.model].heads),
        kv_ratio=floats(lambda c: shapes[c.model].kv_ratio),
        ffn_hidden=floats(lambda c: shapes[c.model].ffn_hidden),
        is_gated=flags(lambda c: bool(c.model.gated_mlp)),
        vocabulary=floats(lambda c: c.model.vocabulary),
        embeddings=floats(lambda c: shapes[c.model].embeddings),
        experts=floats(lambda c: shapes[c.model].experts),
        data=floats(lambda c: c.data_parallel),
        tensor=floats(lambda c: c.tensor_parallel),
        pipeline=floats(lambda c: c.pipeline_parallel),
        virtual_stages=floats(lambda c: c.virtual_stages),
        context=floats(lambda c: c.context_parallel),
        expert=floats(lambda c: c.expert_parallel),
        nodes=floats(lambda c: c.nodes),
        gpus=floats(lambda c: c.gpus),
        has_sequence_parallel=flags(lambda c: c.sequence_parallel),
        seq_len=floats(lambda c: c.seq_len),
        micro_batch=floats(lambda c: c.micro_batch),
        micro_batches=floats(lambda c: c.micro_batches),
        zero_stage=floats(_zero_stage),
        is_hybrid=flags(lambda c: c.strategy == "hsdp"),
        is_wrapped=flags(lambda c: not _keeps_copies(c)),
        is_deepspeed=flags(lambda c: "deepspeed" in c.framework),
        element_bytes=floats(lambda c: 4 if c.precision in FULL_PRECISION else 2),
        gradient_bytes=floats(_gradient_bytes),
        reduced_bytes=floats(lambda c: c.gradient_bytes or _gradient_bytes(c)),
        recompute=np.array([case.recompute for case in cases], dtype=np.str_),
        has_flash=flags(lambda c: c.flash_attention),
        is_lora=flags(lambda c: c.lora),
        is_quantized=flags(lambda c: c.quantized_base),
        is_offloaded=flags(lambda c: c.cpu_offload),
        keeps_gathered=flags(lambda c: not c.reshard_after_forward),
        keeps_gradients=flags(lambda c: c.sync_every_micro_batch is False and c.micro_batches > 1),
        capacity_bytes=floats(lambda c: capacities[c.gpu]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    """What of a model's shape is not published, inferred from what is. Counts, no units."""

    heads: int
    kv_ratio: float
    ffn_hidden: float
    embeddings: float
    experts: float


def _shape(case: TrainingCase) -> _Shape:
    """Head of 128 where heads are unknown; the MLP's width from the parameters a token passes."""
    model = case.model
    hidden, matrices = model.hidden, 3 if model.gated_mlp else 2
    heads = model.heads or max(1, hidden // 128)
    kv_ratio = (model.kv_heads or heads) / heads
    attention = 2.0 * hidden**2 * (1 + kv_ratio)
    table = float(model.vocabulary) * hidden
    is_dense = model.num_experts == 1
    tables = 1.0
    if is_dense and model.ffn_hidden is not None:
        body = model.layers * (attention + matrices * hidden * model.ffn_hidden)
        tables = min((1.0, 2.0), key=lambda many: abs(model.params - body - many * table))
    rest = (model.active_params - tables * table) / model.layers - attention
    inferred = max(hidden, rest / (matrices * hidden))
    ffn_hidden = model.ffn_hidden if is_dense and model.ffn_hidden else inferred
    others = tables * table + model.layers * attention
    return _Shape(
        heads=heads,
        kv_ratio=kv_ratio,
        ffn_hidden=ffn_hidden,
        embeddings=tables * table,
        experts=0.0 if is_dense else max(0.0, model.params - others),
    )


def _zero_stage(case: TrainingCase) -> float:
    if case.strategy in ("fsdp", "hsdp"):
        return 3.0
    return float(case.zero_stage or 0)


def _keeps_copies(case: TrainingCase) -> bool:
    """16-bit weights with fp32 masters beside them, rather than fp32 weights that are cast?"""
    if case.strategy in ("fsdp", "hsdp"):
        return False
    return case.strategy == "megatron" or any(w in case.framework for w in COPYING_FRAMEWORKS)


def _gradient_bytes(case: TrainingCase) -> float:
    """Of a stored gradient: in fp32, but 16 bits where fp16 weights have masters beside them.

    Source: Megatron Core developer guide, distributed optimizer: bytes a parameter by data types
    (bf16 weights with fp32 gradients 18); Rajbhandari et al. 2020 (ZeRO), section 3.1 (fp16: 16).
    """
    if case.precision == "fp16" and _keeps_copies(case):
        return case.gradient_bytes or 2.0
    return 4.0
