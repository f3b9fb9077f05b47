"""What must a forward pass keep for its backward pass? Bytes of activations on the fullest rank."""

import numpy as np

from broadgauge.predict.memory.columns import Array, MemoryColumns

MASK_BYTES = 1.0


def activations_bytes(columns: MemoryColumns) -> Array:
    """Of the stage that keeps most: the first, with the most micro-batches under way, or the last.

    Source: Korthikanti et al. 2022, section 4.2.3: the first of p stages keeps those of p
    micro-batches, so L layers' worth; interleaved 1 + (p − 1)/(pv) times as much.
    """
    base = columns.base
    stages = base.pipeline_parallel
    under_way = np.minimum(stages, base.micro_batches)
    interleaved = 1.0 + (stages - 1.0) / (stages * base.virtual_stages)
    under_way = under_way * np.where(base.virtual_stages > 1, interleaved, 1.0)
    stage_layers = base.stage_layers
    inputs, others, ratio = _input_bytes(columns), _other_bytes(columns), base.recomputed_ratio
    kept = ratio * inputs + (1.0 - ratio) * others
    # One layer that is computed again, whole, beside what is kept of it.
    once = _layer_bytes(columns) - np.where(ratio > 0.0, inputs, others)
    first = stage_layers * under_way * kept + once
    last = stage_layers * kept + once + _head_bytes(columns)
    return np.where(stages > 1, np.maximum(first, last), last)


def _around(columns: MemoryColumns) -> Array:
    """Ranks that share what tensor parallelism alone leaves whole: norms, inputs, dropouts."""
    base = columns.base
    return np.where(base.is_sequence_parallel, base.tensor_parallel, 1.0)


def _outside_bytes(columns: MemoryColumns) -> Array:
    """A layer's, without the attention matrix: sbh (10 + 24/t) for a plain MLP of 4h and 16 bits.

    "10": the inputs of both norms and of both first linears, two dropout masks (an MLP without a
    gate is taken to have them). "24": query, key, value, attention's output, and the MLP's inner
    tensors, two of them, or four with a gate (its input, activation, the other branch, product).
    Source: Korthikanti et al. 2022, equation 2, without 5as/(ht). A mixture also keeps the rows of
    experts as they come and as they go: two more of `hidden` for each expert that a token passes.
    Source: probes/training/mlp.py, held by tests/probes/test_activation_bytes.py.
    """
    base, shapes = columns.base, columns.base.shapes
    tokens, hidden, element = base.tokens, shapes.hidden, base.element_bytes
    masks = np.where(columns.is_gated, 0.0, 2.0 * MASK_BYTES)
    whole = (4.0 * element + masks) * hidden
    inner = np.where(columns.is_gated, 4.0, 2.0) * columns.ffn_hidden
    routed = np.where(shapes.experts > 1, 2.0 * shapes.active_experts * hidden, 0.0)
    split = element * (shapes.attention_width * (2.0 + 2.0 * columns.kv_ratio) + inner + routed)
    return tokens * (whole / _around(columns) + split / base.tensor_parallel)


def _matrix_bytes(columns: MemoryColumns) -> Array:
    """The attention matrix: 5as²b/t in 16 bits (softmax, its dropout, a mask); flash: none.

    Source: Korthikanti et al. 2022, equation 2; Dao et al. 2022 (FlashAttention), section 3.1.
    """
    base, shapes = columns.base, columns.base.shapes
    scores = shapes.heads * base.seq_len * base.tokens / base.tensor_parallel
    matrix = scores * (2.0 * base.element_bytes + MASK_BYTES)
    return np.where(base.is_flash, 0.0, matrix)


def _layer_bytes(columns: MemoryColumns) -> Array:
    return _outside_bytes(columns) + _matrix_bytes(columns)


def _input_bytes(columns: MemoryColumns) -> Array:
    """What stays of a layer that is recomputed in full: its input, 2sbh.

    Source: Korthikanti et al. 2022, table 2, as of the next.
    """
    base = columns.base
    return base.tokens * base.shapes.hidden * base.element_bytes / _around(columns)


def _other_bytes(columns: MemoryColumns) -> Array:
    """What stays of another until its backward pass: selective, all but the attention matrix;
    unknown counts as selective."""
    return np.where(columns.is_kept, _layer_bytes(columns), _outside_bytes(columns))


def _head_bytes(columns: MemoryColumns) -> Array:
    """The last norm's input and output, the logits, and what the loss makes of them."""
    base, shapes = columns.base, columns.base.shapes
    tokens = base.tokens
    a_logit = base.element_bytes + columns.loss_bytes
    logits = shapes.vocabulary / base.tensor_parallel * a_logit
    return tokens * (2.0 * shapes.hidden * base.element_bytes / _around(columns) + logits)
