"""Does it fit? What the fullest GPU of a training holds, by what it holds it for.

The parts are added, though not all of them are at their largest at the same moment: what fits by
this sum fits. Compared with published peaks in tests/predict/memory/test_fullest_gpu.py.
"""

from dataclasses import dataclass

import numpy as np

from broadgauge.predict.case import TrainingCase
from broadgauge.predict.facts.columns import Columns, columns_of
from broadgauge.predict.memory.activations import activations_bytes
from broadgauge.predict.memory.columns import GIB, Array, MemoryColumns, memory_columns
from broadgauge.predict.prediction import MemoryUse

LORA_RANK = 16
"""Of adapters at every linear layer. Hu et al. 2022 use 1 to 64; at 64 they are still 2 % of an 8B
model, so a guess costs little."""
QUANTIZED_BYTES = 0.516
"""Of a weight: 4 bits and 0.127 bits of doubly quantised constants. Source: Dettmers et al. 2023
(QLoRA), section 3."""
DEEPSPEED_BUCKET = 5e8
"""Elements of its reduce and its gather bucket. Source: DeepSpeed configuration,
`reduce_bucket_size`, `allgather_bucket_size`."""
FRAGMENTATION_RATIO = 0.05
"""What the caching allocator holds beyond what is in use. A rule of thumb; published reserved and
allocated peaks differ by 1 to 20 %."""
CONTEXT_BYTES = 0.5 * GIB
"""Of CUDA, and as much again of NCCL where there are several GPUs. A rule of thumb."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryTable:
    """`MemoryUse` of many cases, one entry each."""

    parameters_bytes: Array
    gradients_bytes: Array
    optimizer_bytes: Array
    activations_bytes: Array
    buffers_bytes: Array
    margin_bytes: Array
    capacity_bytes: Array

    @property
    def total_bytes(self) -> Array:
        """All of it."""
        states = self.parameters_bytes + self.gradients_bytes + self.optimizer_bytes
        return states + self.activations_bytes + self.buffers_bytes + self.margin_bytes

    def use(self, index: int) -> MemoryUse:
        """Of one case."""
        return MemoryUse(
            parameters_bytes=float(self.parameters_bytes[index]),
            gradients_bytes=float(self.gradients_bytes[index]),
            optimizer_bytes=float(self.optimizer_bytes[index]),
            activations_bytes=float(self.activations_bytes[index]),
            buffers_bytes=float(self.buffers_bytes[index]),
            margin_bytes=float(self.margin_bytes[index]),
            capacity_bytes=float(self.capacity_bytes[index]),
        )


def memory_use(case: TrainingCase) -> MemoryUse:
    """What the fullest GPU of this training holds. Raises InputError for an unknown GPU."""
    return memory_table(columns_of((case,))).use(0)


def memory_table(base: Columns) -> MemoryTable:
    """The same of many cases."""
    columns = memory_columns(base)
    weights, adapters = _local_weights(columns), _local_adapters(columns)
    trained = np.where(base.is_lora, adapters, weights)
    parameters, gradients, optimizer = _states(columns, weights, trained)
    activations = activations_bytes(columns)
    buffers = _buffers(columns, weights, trained)
    used = parameters + gradients + optimizer + activations + buffers
    contexts = np.where(columns.gpus > 1, 2.0, 1.0)
    return MemoryTable(
        parameters_bytes=parameters,
        gradients_bytes=gradients,
        optimizer_bytes=optimizer,
        activations_bytes=activations,
        buffers_bytes=buffers,
        margin_bytes=FRAGMENTATION_RATIO * used + contexts * CONTEXT_BYTES,
        capacity_bytes=columns.capacity_bytes,
    )


def _local_weights(columns: MemoryColumns) -> Array:
    """Parameters of the fullest stage's rank before data-parallel sharding, a count.

    Layers are shared out over stages (the first has no fewer than others, and the embedding), every
    matrix over tensor ranks, experts over expert ranks.
    """
    base, shapes = columns.base, columns.base.shapes
    body = shapes.params - shapes.embedding_params - columns.experts
    body = body * base.stage_layers / shapes.layers / base.tensor_parallel
    return body + _local_tables(columns) + _local_experts(columns)


def _local_tables(columns: MemoryColumns) -> Array:
    """Of them those of the embedding, and of the head where no other stage has it."""
    base, shapes = columns.base, columns.base.shapes
    table = shapes.vocabulary * shapes.hidden
    tables = np.where(base.pipeline_parallel > 1, table, shapes.embedding_params)
    return np.asarray(tables / base.tensor_parallel)


def _local_experts(columns: MemoryColumns) -> Array:
    """Of them those of experts."""
    base = columns.base
    experts = columns.experts * base.stage_layers / base.shapes.layers
    return experts / (base.tensor_parallel * base.expert_parallel)


def _local_adapters(columns: MemoryColumns) -> Array:
    """Parameters of LoRA's pairs of matrices: rank × (inputs + outputs) of each linear, where
    nobody has counted them."""
    base, shapes = columns.base, columns.base.shapes
    matrices = np.where(columns.is_gated, 3.0, 2.0)
    attention = 4.0 * shapes.hidden + 2.0 * shapes.attention_width * (1.0 + columns.kv_ratio)
    mlp = matrices * (shapes.hidden + columns.ffn_hidden)
    counted = shapes.adapter_params
    each = np.where(np.isnan(counted), LORA_RANK * (attention + mlp), counted)
    return base.stage_layers * each / base.tensor_parallel


def _shard_ranks(columns: MemoryColumns, weights: Array) -> Array:
    """Over how many ranks are states sharded? Context ranks count; HSDP shards within a node.

    Experts are spread over some of these ranks already, so only the ranks that hold the same ones
    can shard them: a mean over a rank's parameters.
    """
    base = columns.base
    ranks = base.data_parallel * base.context_parallel
    ranks = np.where(base.is_replicated_shard, np.maximum(1.0, ranks / base.nodes), ranks)
    experts = _local_experts(columns)
    holders = np.maximum(1.0, ranks / base.expert_parallel)
    return np.asarray(weights / ((weights - experts) / ranks + experts / holders))


def _states(columns: MemoryColumns, weights: Array, trained: Array) -> tuple[Array, Array, Array]:
    """Bytes of parameters, gradients and optimizer, sharded as the ZeRO stage says.

    With Adam in mixed precision 16 bytes a parameter: 2 + 2 + 12 (weights, gradients; fp32 masters
    and two moments), or 4 + 4 + 8 where fp32 weights are cast in passing; Megatron's bf16 keeps
    fp32 gradients, 2 + 4 + 12. Source: Rajbhandari et al. 2020 (ZeRO), section 3.1; Megatron Core
    developer guide, distributed optimizer. LoRA: frozen weights in 16 bits, 16 bytes an adapter's
    parameter (fp32, as PEFT keeps them).
    """
    base = columns.base
    ranks = _shard_ranks(columns, weights)
    of_weights = np.where(columns.zero_stage >= 3, ranks, 1.0)
    of_gradients = np.where(columns.zero_stage >= 2, ranks, 1.0)
    of_optimizer = np.where(columns.zero_stage >= 1, ranks, 1.0)
    is_copied = ~columns.is_wrapped & (base.element_bytes < 4)
    weight_bytes = np.where(is_copied, 2.0, 4.0)
    frozen_bytes = np.where(base.is_quantized, QUANTIZED_BYTES, base.element_bytes)
    tables = _local_tables(columns)
    frozen = (weights - tables) * frozen_bytes + tables * base.element_bytes
    parameters = np.where(base.is_lora, frozen + 4.0 * trained, weight_bytes * weights)
    moments = np.where(is_copied, 12.0, 8.0) * trained / of_optimizer
    gradients = columns.gradient_bytes * trained / of_gradients
    is_away = base.is_offloaded
    return (
        np.where(is_away & (columns.zero_stage >= 3), 0.0, parameters / of_weights),
        np.where(is_away & (columns.zero_stage >= 2), 0.0, gradients),
        np.where(is_away, 0.0, moments),
    )


def _buffers(columns: MemoryColumns, weights: Array, trained: Array) -> Array:
    """Bytes of what stands beside the states: casts, gathered units, buckets, messages.

    - DDP: autocast's 16-bit copy of the weights, kept from forward to backward, and buckets as
      large as the gradients. Source: torch 2.11, `torch.autocast` (weight cache) and
      DistributedDataParallel, `gradient_as_bucket_view` (false unless asked).
    - FSDP and ZeRO-3: two gathered layers and what is in no layer; a layer's whole gradient and
      its copy on the way. Source: Zhao et al. 2023, section 3.3 (prefetch of one unit).
    - Tensor and pipeline ranks: one message sent and one received.
    """
    base, shapes = columns.base, columns.base.shapes
    is_cast = columns.is_wrapped & (base.element_bytes < 4) & ~base.is_lora
    is_whole = columns.zero_stage < 3
    casts = np.where(is_cast & is_whole, base.element_bytes * weights, 0.0)
    is_bucketed = columns.is_wrapped & is_whole & (base.data_parallel > 1)
    buckets = np.where(is_bucketed, columns.reduced_bytes * trained, 0.0)
    bucket = np.minimum(DEEPSPEED_BUCKET, weights) * base.element_bytes
    is_deepspeed = columns.is_deepspeed & (columns.zero_stage >= 1)
    deepspeed = np.where(is_deepspeed & is_whole, 2.0 * bucket, 0.0)
    sharded = np.where(is_whole, 0.0, _gathered(columns, weights, trained))
    message = base.tokens * shapes.hidden * base.element_bytes
    sends = np.where(base.tensor_parallel > 1, 2.0, 0.0)
    sends = sends + np.where(base.pipeline_parallel > 1, 2.0, 0.0)
    return casts + buckets + deepspeed + sharded + sends * message


def _gathered(columns: MemoryColumns, weights: Array, trained: Array) -> Array:
    """Bytes of units that are whole for a while, where weights are sharded."""
    base, shapes = columns.base, columns.base.shapes
    stage_layers = base.stage_layers
    edge = np.minimum(weights, shapes.outside_params / base.tensor_parallel)
    layer = (weights - edge) / stage_layers
    adapters = np.where(base.is_lora, trained / stage_layers, 0.0)
    frozen_bytes = np.where(base.is_quantized, QUANTIZED_BYTES, base.element_bytes)
    unit = layer * frozen_bytes + adapters * base.element_bytes
    kept_units = weights * frozen_bytes + adapters * stage_layers * base.element_bytes
    whole = np.where(columns.keeps_gathered, kept_units, 2.0 * unit + edge * base.element_bytes)
    dequantized = shapes.hidden * columns.ffn_hidden / base.tensor_parallel * base.element_bytes
    whole = whole + np.where(base.is_quantized, dequantized, 0.0)
    unreduced = np.where(base.is_lora, trained / stage_layers, layer)
    gradients = unreduced * (base.element_bytes + columns.reduced_bytes)
    kept = np.where(columns.keeps_gradients, trained * columns.reduced_bytes, gradients)
    return whole + kept
