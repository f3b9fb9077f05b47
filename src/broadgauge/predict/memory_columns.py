"""What of many cases decides their memory, beside the columns that their times are computed on?"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from broadgauge.predict.case import TrainingCase
from broadgauge.predict.columns import Columns, zero_stage

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

GIB = 2.0**30
LOSS_BYTES = 12.0
"""Of a logit beside the head's own output: its fp32 copy, its log-probability, and the gradient.
Source: torch 2.11, `cross_entropy` of `logits.float()`, counted."""
FUSED_LOSS_BYTES = 8.0
"""Megatron's: log-probabilities take the place of the copy. Source: Megatron-LM,
`vocab_parallel_cross_entropy`, counted."""
IN_PLACE_LOSS_BYTES = 0.0
"""The gradient takes the place of the logits. Source: Dao-AILab/flash-attention, `CrossEntropyLoss`
with `inplace_backward`, which mosaicml/llm-foundry uses (`loss_fn: fused_crossentropy`)."""
IN_PLACE_FRAMEWORKS = ("llm-foundry",)
COPYING_FRAMEWORKS = ("megatron", "deepspeed", "nemo", "nvidia")
"""Parts of the names of those that keep 16-bit weights beside their fp32 master copies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryColumns:
    """One entry a case."""

    base: Columns
    is_gated: Flags
    kv_ratio: Array
    """Key and value heads over heads."""
    ffn_hidden: Array
    """Of all experts that a token passes, together."""
    experts: Array
    """Parameters of all experts."""
    gpus: Array
    zero_stage: Array
    """3 for FSDP and HSDP."""
    is_wrapped: Flags
    """DDP's and FSDP's fp32 weights, cast where they are used; else 16-bit weights with fp32
    masters, as Megatron and DeepSpeed keep them."""
    is_deepspeed: Flags
    loss_bytes: Array
    """Of a logit, beside the head's own output."""
    is_kept: Flags
    """Nothing is computed again."""
    gradient_bytes: Array
    """Of a stored gradient."""
    reduced_bytes: Array
    """Of a gradient on its way."""
    keeps_gathered: Flags
    """Sharded weights stay whole until the backward pass has used them."""
    keeps_gradients: Flags
    """Sharded, and gradients stay whole until the last micro-batch."""
    capacity_bytes: Array


def memory_columns(base: Columns) -> MemoryColumns:
    """What memory asks of these cases."""
    cases, shapes = base.cases, base.shapes

    def floats(of: Callable[[TrainingCase], float]) -> Array:
        return np.fromiter(map(of, cases), np.float64, len(cases))

    def flags(of: Callable[[TrainingCase], bool]) -> Flags:
        return np.fromiter(map(of, cases), np.bool_, len(cases))

    capacities = np.array([gpu.memory_gib * GIB for gpu in base.gpus])
    return MemoryColumns(
        base=base,
        is_gated=shapes.mlp_matrices > 2,
        kv_ratio=np.maximum(0.0, (shapes.qkv_width / shapes.attention_width - 1.0) / 2.0),
        ffn_hidden=shapes.ffn_hidden * shapes.active_experts,
        experts=shapes.layers * shapes.expert_params,
        gpus=base.nodes * base.gpus_per_node,
        zero_stage=floats(_zero_stage),
        is_wrapped=flags(lambda c: not _keeps_copies(c)),
        is_deepspeed=flags(lambda c: "deepspeed" in c.framework),
        loss_bytes=floats(_loss_bytes),
        is_kept=flags(lambda c: c.recompute == "none"),
        gradient_bytes=floats(_gradient_bytes),
        reduced_bytes=floats(lambda c: c.gradient_bytes or _gradient_bytes(c)),
        keeps_gathered=flags(lambda c: not c.reshard_after_forward),
        keeps_gradients=flags(lambda c: c.sync_every_micro_batch is False and c.micro_batches > 1),
        capacity_bytes=capacities[base.gpu_index],
    )


def _zero_stage(case: TrainingCase) -> float:
    return 3.0 if case.strategy in ("fsdp", "hsdp") else float(zero_stage(case))


def _loss_bytes(case: TrainingCase) -> float:
    if case.framework in IN_PLACE_FRAMEWORKS:
        return IN_PLACE_LOSS_BYTES
    return FUSED_LOSS_BYTES if _keeps_copies(case) else LOSS_BYTES


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
