"""What of many cases decides their memory, beside the columns that their times are computed on?"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from broadgauge.catalog.frameworks import Framework
from broadgauge.predict.case import TrainingCase
from broadgauge.predict.facts.arrays import Flags
from broadgauge.predict.facts.columns import Columns
from broadgauge.predict.facts.element_sizes import gradient_bytes
from broadgauge.predict.facts.zero_stage import zero_stage

Array = npt.NDArray[np.float64]

GIB = 2.0**30
LOSS_BYTES = 12.0
"""Of a logit beside the head's own output: its fp32 copy, its log-probability, and the gradient.
Source: torch 2.11, `cross_entropy` of `logits.float()`, counted."""
FUSED_LOSS_BYTES = 8.0
"""Megatron's: log-probabilities take the place of the copy. Source: Megatron-LM,
`vocab_parallel_cross_entropy`, counted."""
IN_PLACE_LOSS_BYTES = 0.0
"""The gradient takes the place of the logits. Source: Dao-AILab/flash-attention, `CrossEntropyLoss`
with `inplace_backward`."""


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

    def habits(of: Callable[[Framework], bool]) -> Flags:
        return np.array([of(each) for each in base.frameworks], np.bool_)[base.framework_index]

    is_megatron = flags(lambda c: c.strategy == "megatron")
    is_piped = base.pipeline_parallel > 1  # gathered once a step and reduced at its end
    is_fsdp = flags(lambda c: c.strategy in ("fsdp", "hsdp"))
    keeps_copies = (is_megatron | habits(lambda f: f.keeps_masters)) & ~is_fsdp
    fused_bytes = np.where(keeps_copies, FUSED_LOSS_BYTES, LOSS_BYTES)
    capacities = np.array([gpu.memory_gib * GIB for gpu in base.gpus])
    return MemoryColumns(
        base=base,
        is_gated=shapes.mlp_matrices > 2,
        kv_ratio=np.maximum(0.0, (shapes.qkv_width / shapes.attention_width - 1.0) / 2.0),
        ffn_hidden=shapes.ffn_hidden * shapes.active_experts,
        experts=shapes.layers * shapes.expert_params,
        gpus=base.nodes * base.gpus_per_node,
        zero_stage=floats(_zero_stage),
        is_wrapped=~keeps_copies,
        is_deepspeed=habits(lambda f: f.uses_deepspeed),
        loss_bytes=np.where(
            habits(lambda f: f.overwrites_logits), IN_PLACE_LOSS_BYTES, fused_bytes
        ),
        is_kept=flags(lambda c: c.recompute == "none"),
        gradient_bytes=_stored_gradient_bytes(base, keeps_copies),
        reduced_bytes=gradient_bytes(base),
        keeps_gathered=flags(lambda c: not c.reshard_after_forward) | is_piped,
        keeps_gradients=is_piped
        | flags(lambda c: c.sync_every_micro_batch is False and c.micro_batches > 1),
        capacity_bytes=capacities[base.gpu_index],
    )


def _zero_stage(case: TrainingCase) -> float:
    return 3.0 if case.strategy in ("fsdp", "hsdp") else float(zero_stage(case))


def _stored_gradient_bytes(base: Columns, keeps_copies: Flags) -> Array:
    """Of a stored gradient: in fp32, but 16 bits where fp16 weights have masters beside them.

    Source: Megatron Core developer guide, distributed optimizer: bytes a parameter by data types
    (bf16 weights with fp32 gradients 18); Rajbhandari et al. 2020 (ZeRO), section 3.1 (fp16: 16).
    """
    is_half = np.array([case.precision == "fp16" for case in base.cases], np.bool_) & keeps_copies
    said = np.array([case.gradient_bytes for case in base.cases], np.float64)
    return np.where(is_half, np.where(np.isnan(said), 2.0, said), 4.0)
