"""How long does one kind of kernel run? Matrix products, attention, and what memory bounds."""

from dataclasses import dataclass

import numpy as np

from broadgauge.catalog.gpus import clock_ratio
from broadgauge.predict.facts.arrays import Times
from broadgauge.predict.facts.columns import Columns
from broadgauge.predict.facts.knowledge import Knowledge
from broadgauge.predict.facts.similar_kernels import shape_slowness

HBM_EFFICIENCY = 0.8
"""Share of the data sheet's memory bandwidth that streams reach. Source: BabelStream on A100
and V100 (Deakin et al. 2018) reaches 0.8 to 0.9."""
TILES = ((256.0, 128.0, 1.0), (128.0, 128.0, 0.95), (128.0, 64.0, 0.8), (64.0, 64.0, 0.6))
"""Rows, columns, and the rate of such a tile over the largest one's. Source: NVIDIA, Matrix
Multiplication Background User's Guide, "Tile Quantization" and "Wave Quantization"."""
SPLITS = (1.0, 2.0, 4.0)
"""Into how many parts a product's inner size may be cut to fill the GPU (split-K)."""
TILE_FILL = 64.0
"""Steps of the inner size that a tile spends on filling and draining its pipeline."""
FLASH_BACKWARD_FLOPS = 2.5
"""Matrix products of the backward pass over the forward's: five to two. Source: Dao 2023 (arXiv
2307.08691), section 3.1."""
FLASH_BACKWARD_EFFICIENCY = 0.8
"""Rate of the backward kernel over the forward's. Source: Dao 2023, figures 5 and 6."""

NARROW_HEADS = 0.85
"""Rate with heads 64 wide over that with 128. Source: Dao 2023, figures 4 and 5, long sequences."""

UNFUSED_BACKWARD = 1.5
"""Traffic on scores of the backward pass over the forward's: a gradient beside each tensor that was
read. Source: counted on Megatron-LM's fused softmax and dropout, 9 and 13 bytes with products."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What the kernels of each case reach."""

    gemm_flops: Times
    """FLOP/s of a large matrix product."""
    attention_flops: Times
    """FLOP/s of a flash kernel on a long sequence, forward."""
    batched_gemm_flops: Times
    """FLOP/s of the products inside attention that is not fused."""
    memory_rate: Times
    """byte/s that a streaming kernel moves."""
    sms: Times
    fixed_s: Times
    """Start and end of one kernel."""


def rates_of(columns: Columns, knowledge: Knowledge) -> Rates:
    """Peaks times efficiencies."""
    clocks = np.array([clock_ratio(gpu) for gpu in columns.gpus])[columns.gpu_index]
    clocks = np.where(columns.is_fp32, 1.0, clocks)  # they are of tensor cores
    efficiency = knowledge.by_generation("gemm_efficiency", columns) * clocks
    fp8 = columns.gemm_flops > columns.attention_flops
    efficiency = np.where(fp8, efficiency * knowledge.value("fp8_efficiency"), efficiency)
    efficiency = np.where(columns.is_fp32, knowledge.value("cuda_core_efficiency"), efficiency)
    attention = knowledge.by_generation("attention_efficiency", columns) * clocks
    slowness = knowledge.factors_of("compute", columns) * columns.across_slowness
    slowness = slowness * shape_slowness(columns.cases, knowledge.misses)
    attention = attention / knowledge.factors_of("attention", columns)
    streaming = HBM_EFFICIENCY / knowledge.factors_of("memory", columns)
    return Rates(
        gemm_flops=columns.gemm_flops * efficiency / slowness,
        attention_flops=columns.attention_flops * attention / slowness,
        batched_gemm_flops=columns.attention_flops
        * np.where(columns.is_fp32, 0.8, 0.5)
        * clocks
        / slowness,
        memory_rate=columns.memory_rate * streaming / slowness,
        sms=columns.sms,
        fixed_s=knowledge.value("kernel_fixed_s") * slowness,
    )


def gemm_s(
    sizes: tuple[Times, Times, Times],
    rates: Rates,
    element_bytes: Times,
    *,
    count: Times | float = 1.0,
) -> Times:
    """`count` products in one launch: the slower of FLOPs and bytes.

    `sizes`: rows, width and depth of a rows × depth by depth × width product.

    The best of the tiles of `TILES`; a GPU works on as many tiles at once as it has SMs, so the
    last wave is rarely full.
    """
    rows, width, depth = sizes
    best = np.full(len(rows), np.inf)
    for tile_rows, tile_width, rate in TILES:
        tiles = np.ceil(rows / tile_rows) * np.ceil(width / tile_width) * count
        per_depth = 2.0 * tile_rows * tile_width * rates.sms / (rates.gemm_flops * rate)
        for split in SPLITS:
            waves = np.ceil(tiles * split / rates.sms)
            best = np.minimum(best, waves * per_depth * (depth / split + TILE_FILL * split))
    moved = count * (rows * depth + depth * width + rows * width) * element_bytes
    seconds: Times = np.maximum(best, moved / rates.memory_rate) + rates.fixed_s
    return seconds


def flash_attention_s(columns: Columns, rates: Rates, ramp_tokens: float) -> tuple[Times, Times]:
    """Forward and backward of a layer's fused attention. Causal kernels skip the masked half."""
    shapes = columns.shapes
    executed = np.where(columns.is_encoder, 1.0, 0.5)
    flops = 4.0 * columns.tokens * columns.seq_len * shapes.attention_width * executed
    flops = flops / columns.tensor_parallel
    ramp = columns.seq_len / (columns.seq_len + ramp_tokens)
    ramp = ramp * np.where(shapes.head_size < 96, NARROW_HEADS, 1.0)
    forward_s = flops / (rates.attention_flops * ramp)
    backward_s = forward_s * FLASH_BACKWARD_FLOPS / FLASH_BACKWARD_EFFICIENCY
    return forward_s + rates.fixed_s, backward_s + 2 * rates.fixed_s


def unfused_attention_s(columns: Columns, rates: Rates, scores_bytes: Times) -> tuple[Times, Times]:
    """Forward and backward of attention that writes its s × s scores, mask and all.

    `scores_bytes` are moved for each score of a forward pass: products, softmax and dropout.
    """
    heads = columns.shapes.heads / columns.tensor_parallel * columns.micro_batch
    scores = heads * columns.seq_len**2 / columns.context_parallel
    flops = 2.0 * scores * columns.shapes.head_size
    product_s = flops / rates.batched_gemm_flops
    moved_s = scores * scores_bytes * columns.element_bytes / 2 / rates.memory_rate
    forward_s = 2 * product_s + moved_s + 4 * rates.fixed_s
    backward_s = 4 * product_s + UNFUSED_BACKWARD * moved_s + 8 * rates.fixed_s
    return forward_s, backward_s
