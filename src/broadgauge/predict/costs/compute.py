"""How long do kernels run, and how long does the CPU need to launch them?

A layer is its matrix products (kernels.gemm_s), attention, what memory bounds, and a fixed cost for
each kernel; the step adds embedding, head and loss for each micro-batch, and the optimizer.
"""

from dataclasses import dataclass

import numpy as np

from broadgauge.catalog.frameworks import STYLES
from broadgauge.predict.costs.groups import group_of
from broadgauge.predict.costs.kernels import (
    Rates,
    flash_attention_s,
    gemm_s,
    rates_of,
    unfused_attention_s,
)
from broadgauge.predict.costs.pieces import ComputeCosts
from broadgauge.predict.facts.arrays import Times
from broadgauge.predict.facts.columns import Columns
from broadgauge.predict.facts.knowledge import Knowledge

KERNELS = {"fused": 14.0, "eager": 24.0, "modular": 50.0, "compiled": 10.0}
"""Of a layer's forward pass beside its matrix products and attention, by style."""
BACKWARD_KERNELS = 2.0
"""Backward over forward."""
BACKWARD_LAUNCH = 1.2
"""Host time to launch a layer's backward over its forward: twice the kernels, from C++."""
RECOMPUTE_LAUNCH = 1.9
"""Host time to run a layer's forward again in its backward pass, over the forward's: generators are
restored, and a graph is built. Source: docs/measurements.md, what a layer costs its host: 2.0 for
Megatron-core, 1.8 for plain PyTorch."""
ADAPTER_LAUNCH = 1.6
"""Host time of a layer with adapters over one without. Source: docs/measurements.md, what a layer
costs its host, with PEFT: 1.2 on two products, 1.8 to 2.2 on seven; which ones no case says."""
MASKED_SHARE = 0.16
"""Of an encoder's tokens reach its head: 20 of 128, 80 of 512 are predicted. Source: Devlin et al.
2019 (arXiv 1810.04805), section 3.1, and its `max_predictions_per_seq`."""
FULL_PRECISION_WIDTH = 1.6
"""Traffic with 32-bit activations over that of mixed precision, whose norms, softmax and losses are
in 32 bits already. Source: Micikevicius et al. 2018 (arXiv 1710.03740), section 3.3."""
HOST_ADAM_S = 0.45e-9
"""Of one parameter updated by all of a host's CPUs: their memory bounds it, and the ranks of a node
share that. Source: Ren et al. 2021 (ZeRO-Offload, arXiv 2101.06840), table 4: 1 billion parameters
in 0.3 to 0.6 s with CPU-Adam, read as of a whole host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Passes:
    """One layer's seconds by bound: `products_s` compute, `memory_s` memory."""

    products_s: Times
    memory_s: Times

    @property
    def total_s(self) -> Times:
        return self.products_s + self.memory_s


def compute_costs(columns: Columns, knowledge: Knowledge) -> ComputeCosts:
    """Everything but communication, for each case."""
    rates = rates_of(columns, knowledge)
    forward, backward, attention_s = _layer(columns, knowledge, rates)
    head_forward, head_backward = _head(columns, knowledge, rates)
    launch_s = _launch_s(columns, knowledge) * knowledge.factors_of("launch", columns)
    recompute_s, recompute_launch_s = _recompute(columns, forward, attention_s, launch_s)
    memory_s = forward.memory_s + backward.memory_s
    layer_s = forward.total_s + backward.total_s
    head_launch_s = 0.6 * launch_s
    zero = np.zeros(len(columns))
    once = knowledge.factors_of("once", columns)
    return ComputeCosts(
        layer_forward_s=forward.total_s,
        layer_backward_s=backward.total_s,
        layer_recompute_s=recompute_s,
        layer_forward_launch_s=launch_s,
        layer_backward_launch_s=BACKWARD_LAUNCH * launch_s,
        layer_recompute_launch_s=recompute_launch_s,
        head_forward_s=head_forward.total_s,
        head_backward_s=head_backward.total_s,
        head_forward_launch_s=head_launch_s,
        head_backward_launch_s=head_launch_s,
        optimizer_s=_optimizer_s(columns, knowledge, rates) * once,
        optimizer_launch_s=zero
        + 0.1 * launch_s * columns.shapes.layers / columns.pipeline_parallel,
        step_fixed_s=knowledge.by_style("step_fixed_s", columns) * once,
        memory_bound_ratio=memory_s / layer_s,
        overlap_slowdown_ratio=zero + knowledge.value("overlap_slowdown_ratio"),
    )


def _layer(columns: Columns, knowledge: Knowledge, rates: Rates) -> tuple[_Passes, _Passes, Times]:
    """Forward, backward, and the attention core that selective recomputation adds."""
    forward_s, input_s, weight_s = _products(columns, rates)
    flash_s = flash_attention_s(columns, rates, knowledge.value("attention_ramp_tokens"))
    scores_bytes = knowledge.by_style("scores_bytes", columns)
    unfused_s = unfused_attention_s(columns, rates, scores_bytes)
    core_forward_s = np.where(columns.is_flash, flash_s[0], unfused_s[0])
    core_backward_s = np.where(columns.is_flash, flash_s[1], unfused_s[1])
    stream_s = _traffic_s(columns, knowledge, rates)
    backward_ratio = knowledge.value("backward_traffic_ratio")
    kernels = np.array([KERNELS[style] for style in STYLES])[columns.style_index]
    fixed_s = kernels * rates.fixed_s
    extra_s = _adapter_s(columns, knowledge, rates)
    dequantize_s = _dequantize_s(columns, knowledge, rates)
    accumulate_s = _accumulate_s(columns, knowledge, rates)
    weight_s = np.where(columns.is_lora, 0.0, weight_s)
    forward = _Passes(
        products_s=forward_s + core_forward_s,
        memory_s=stream_s + fixed_s + extra_s + dequantize_s,
    )
    backward = _Passes(
        products_s=input_s + weight_s + core_backward_s,
        memory_s=backward_ratio * stream_s
        + BACKWARD_KERNELS * fixed_s
        + backward_ratio * extra_s
        + dequantize_s
        + accumulate_s,
    )
    return forward, backward, core_forward_s


def _products(columns: Columns, rates: Rates) -> tuple[Times, Times, Times]:
    """A layer's matrix products: forward, gradients of the inputs, gradients of the weights."""
    shapes, split = columns.shapes, columns.tensor_parallel
    tokens = columns.tokens
    local_experts = np.maximum(1.0, shapes.experts / columns.expert_parallel)
    routed = tokens * shapes.active_experts / local_experts
    up = shapes.ffn_hidden * (shapes.mlp_matrices - 1) / split
    one = np.ones(len(columns))
    matrices = (
        (tokens, shapes.qkv_width / split, shapes.hidden, one),
        (tokens, shapes.hidden, shapes.attention_width / split, one),
        (routed, up, shapes.hidden, local_experts),
        (routed, shapes.hidden, shapes.ffn_hidden / split, local_experts),
    )
    sums = [np.zeros(len(columns)) for _ in range(3)]
    for rows, width, depth, count in matrices:
        bytes_each = columns.element_bytes
        sums[0] += gemm_s((rows, width, depth), rates, bytes_each, count=count)
        sums[1] += gemm_s((rows, depth, width), rates, bytes_each, count=count)
        sums[2] += gemm_s((depth, width, rows), rates, bytes_each, count=count)
    return sums[0], sums[1], sums[2]


def _traffic_s(columns: Columns, knowledge: Knowledge, rates: Rates) -> Times:
    """Forward seconds of element-wise kernels along the sequence.

    What a layer stores, sbh(10 + 24/t) bytes at 16 bit, times how often it is moved. Of the 24,
    16 are the inner activations of the MLP (two of 4h each; a gate has four of its width).
    Source: Korthikanti et al. 2022 (arXiv 2205.05198), eq. 2 and section 4.1.
    """
    shapes, split = columns.shapes, columns.tensor_parallel
    ratio = knowledge.by_style("traffic_ratio", columns)
    inner = 4.0 * (shapes.mlp_matrices - 1) * shapes.ffn_hidden * shapes.active_experts
    routing = np.where(shapes.experts > 1, 4.0 * shapes.active_experts, 0.0)
    whole = np.where(columns.is_sequence_parallel, 10.0 / split, 10.0)
    heads = 8.0 * shapes.attention_width / shapes.hidden
    stored = columns.tokens * (shapes.hidden * (whole + (heads + routing) / split) + inner / split)
    width = np.where(columns.element_bytes > 2, FULL_PRECISION_WIDTH, 1.0)
    return ratio * stored * width / rates.memory_rate


def _adapter_s(columns: Columns, knowledge: Knowledge, rates: Rates) -> Times:
    """LoRA's kernels on the inputs and outputs of a layer's matrices, forward."""
    shapes = columns.shapes
    widths = 2 * shapes.hidden + shapes.attention_width + shapes.qkv_width
    widths = widths + shapes.mlp_matrices * (shapes.hidden + shapes.ffn_hidden)
    moved = knowledge.value("lora_traffic_bytes") * columns.tokens * widths
    return np.where(columns.is_lora, moved / columns.tensor_parallel / rates.memory_rate, 0.0)


def _dequantize_s(columns: Columns, knowledge: Knowledge, rates: Rates) -> Times:
    """int4 weights to 16 bit, once a pass. Source: Dettmers et al. 2023, arXiv 2305.14314."""
    moved = knowledge.value("dequantize_bytes") * columns.shapes.layer_params
    return np.where(columns.is_quantized, moved / columns.tensor_parallel / rates.memory_rate, 0.0)


def _accumulate_s(columns: Columns, knowledge: Knowledge, rates: Rates) -> Times:
    """A micro-batch's gradients of a layer added to the sum of those before."""
    local = columns.shapes.held_layer(columns.expert_parallel) / columns.tensor_parallel
    is_summed = (columns.micro_batches > 1) & ~columns.is_lora & ~columns.is_sharded
    return np.where(is_summed, knowledge.value("accumulate_bytes") * local / rates.memory_rate, 0.0)


def _head(columns: Columns, knowledge: Knowledge, rates: Rates) -> tuple[_Passes, _Passes]:
    """Head and loss on the vocabulary, and the embedding, of one micro-batch."""
    shapes = columns.shapes
    tokens = columns.tokens * np.where(columns.is_encoder, MASKED_SHARE, 1.0)
    width = shapes.vocabulary / columns.tensor_parallel
    bytes_each = columns.element_bytes
    slowness = knowledge.factors_of("head", columns)
    efficiency = knowledge.by_style("head_efficiency", columns) / slowness
    forward_s = gemm_s((tokens, width, shapes.hidden), rates, bytes_each)
    input_s = gemm_s((tokens, shapes.hidden, width), rates, bytes_each)
    weight_s = gemm_s((shapes.hidden, width, tokens), rates, bytes_each)
    weight_s = np.where(columns.is_lora, 0.0, weight_s)
    logits_s = knowledge.by_style("logit_bytes", columns) * tokens * width / rates.memory_rate
    logits_s = logits_s * slowness
    embedding_s = 6.0 * bytes_each * columns.tokens * shapes.hidden / rates.memory_rate
    accumulate_s = _accumulate_s(columns, knowledge, rates)
    accumulate_s = accumulate_s * shapes.embedding_params / shapes.layer_params
    return (
        _Passes(products_s=forward_s / efficiency, memory_s=0.5 * logits_s + embedding_s),
        _Passes(
            products_s=(input_s + weight_s) / efficiency,
            memory_s=0.5 * logits_s + embedding_s + accumulate_s,
        ),
    )


def _launch_s(columns: Columns, knowledge: Knowledge) -> Times:
    """What the host needs for a layer's forward pass."""
    launch_s = knowledge.by_style("launch_s", columns)
    launch_s = np.where(columns.is_lora, ADAPTER_LAUNCH * launch_s, launch_s)
    return launch_s + np.where(columns.is_sharded, knowledge.value("shard_launch_s"), 0.0)


def _recompute(
    columns: Columns, forward: _Passes, attention_s: Times, launch_s: Times
) -> tuple[Times, Times]:
    """Full: one more forward of the layer, or of some layers; selective: of attention's core only.

    Source: Korthikanti et al. 2022, section 5; flash attention recomputes its core by itself.
    """
    selective_s = np.where(columns.is_flash, 0.0, attention_s)
    whole = columns.recomputed_ratio
    selective = np.where(columns.is_selective_recompute, 1.0 - whole, 0.0)
    seconds = whole * forward.total_s + selective * selective_s
    return seconds, (RECOMPUTE_LAUNCH * whole + 0.2 * selective) * launch_s


def _optimizer_s(columns: Columns, knowledge: Knowledge, rates: Rates) -> Times:
    """The update of this rank's share of the parameters, clipping included."""
    shapes = columns.shapes
    split = columns.tensor_parallel * columns.pipeline_parallel
    experts = shapes.layers * shapes.expert_params
    rest, spread = (shapes.params - experts) / split, experts / split / columns.expert_parallel
    sharded = rest / group_of("shard", columns).ranks
    sharded = sharded + spread / group_of("expert shard", columns).ranks
    local = np.where(columns.is_optimizer_sharded, sharded, rest + spread)
    local = np.where(columns.is_lora, shapes.adapter_ratio * local, local)
    on_gpu_s = knowledge.by_style("optimizer_bytes", columns) * local / rates.memory_rate
    on_host_s = local * (HOST_ADAM_S * columns.gpus_per_node + 4.0 / columns.pcie_rate)
    return np.where(columns.is_offloaded, on_host_s, on_gpu_s)
