"""How large are a layer's matrices? Inferred where only the number of parameters is known."""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from broadgauge.predict.case import ModelShape
from broadgauge.predict.facts.arrays import Flags, Times

TIED_LAYER = (11.6, 12.25)
"""Parameters of a layer over hidden²: between these it is a GPT-2-like block (12 + biases + norms),
whose embedding is tied to the head. Source: Radford et al. 2019, Narayanan et al. 2021 eq. 2."""


ADAPTER_RATIO = 0.01
"""LoRA's parameters over the model's. Source: Hu et al. 2022 (arXiv 2106.09685), table 4: 0.01 to
0.2 % on attention alone; ranks of 16 to 64 on every linear layer give 0.5 to 2 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shapes:
    """Sizes of models, one entry a case."""

    layers: Times
    hidden: Times
    heads: Times
    head_size: Times
    vocabulary: Times
    params: Times
    layer_params: Times
    """Of one layer, all experts."""
    layer_active_params: Times
    """Of one layer, those that a token passes."""
    attention_width: Times
    """Of all heads together: columns of the queries. `hidden` unless heads have their own size."""
    attention_params: Times
    """Of one layer: queries, keys, values and output."""
    qkv_width: Times
    """Columns of the joint product of queries, keys and values."""
    mlp_params: Times
    """Of one layer and one token: the experts it passes."""
    ffn_hidden: Times
    """Of one expert where there are experts."""
    mlp_matrices: Times
    """2, or 3 with a gate."""
    experts: Times
    active_experts: Times
    embedding_params: Times
    """Embedding and head; once where they are tied."""
    outside_params: Times
    """What is in no layer: those tables and, where layers were counted, learned positions and the
    last norm, too."""
    adapter_params: Times
    """LoRA's, of one layer; not a number where nobody has counted them."""
    adapter_rank: Times
    """Rows of each A; as `adapter_params`."""
    adapter_inputs: Times
    """Columns of a layer's A together; as `adapter_params`."""

    @property
    def adapter_ratio(self) -> Times:
        """LoRA's parameters over the model's."""
        counted = self.layers * self.adapter_params / self.params
        return np.where(np.isnan(counted), ADAPTER_RATIO, counted)

    def padded_adapters(self, shards: Times) -> Times:
        """Of one layer, what FSDP adds to A's rows so that all shards have as many; 0 where nobody
        has counted them."""
        rows = np.ceil(self.adapter_rank / shards) * shards - self.adapter_rank
        return np.asarray(np.nan_to_num(rows * self.adapter_inputs))

    @property
    def expert_params(self) -> Times:
        """Of one layer: all its experts; 0 where it has none."""
        return np.where(self.experts > 1, self.layer_params - self.attention_params, 0.0)

    def held_layer(self, expert_parallel: Times) -> Times:
        """Of one layer, what a rank holds where experts are spread over so many."""
        experts = self.expert_params
        return self.layer_params - experts + experts / expert_parallel


def infer_shapes(models: Sequence[ModelShape]) -> Shapes:
    """What is not published is inferred from what is."""
    names = ("layers", "hidden", "vocabulary", "params", "active_params", "num_experts")
    table = np.array(list(map(attrgetter(*names), models)), dtype=np.float64)
    layers, hidden, vocabulary, params, active, experts = table.reshape(-1, len(names)).T
    sizes = ("heads", "kv_heads", "head_dim", "ffn_hidden", "gated_mlp", "tied_embeddings")
    optional = (*sizes, "layer_params", "adapter_params", "adapter_rank", "adapter_inputs")
    known = np.array(list(map(attrgetter(*optional), models)), dtype=np.float64)
    # None reads as nan
    heads, kv_heads, head_dim, ffn, gated, tied, counted, *of_adapters = known.reshape(
        -1, len(optional)
    ).T
    adapters, adapter_rank, adapter_inputs = of_adapters
    heads = np.where(np.isnan(heads), infer_heads(hidden), heads)
    attention_width = np.where(np.isnan(head_dim), hidden, heads * head_dim)
    is_tied = np.where(np.isnan(tied), _looks_tied(layers, hidden, vocabulary, active), tied > 0)
    embedding = vocabulary * hidden * np.where(is_tied, 1.0, 2.0)
    layer = np.where(np.isnan(counted), (params - embedding) / layers, counted)
    outside = np.where(np.isnan(counted), embedding, params - counted * layers)
    layer_active = np.minimum((active - embedding) / layers, layer)
    group = np.where(np.isnan(kv_heads), 1.0, kv_heads / heads)
    attention = np.minimum(hidden * attention_width * (2 + 2 * group), 0.9 * layer_active)
    mlp = layer_active - attention
    is_gated = np.where(np.isnan(gated), layer_active / hidden**2 > TIED_LAYER[1], gated > 0)
    matrices = np.where(is_gated, 3.0, 2.0)
    share = mlp / np.maximum(layer - attention, 1.0)
    active_experts = np.where(experts > 1, np.maximum(1.0, share * experts), 1.0)
    width = np.where(np.isnan(ffn), mlp / active_experts / (matrices * hidden), ffn)
    return Shapes(
        layers=layers,
        hidden=hidden,
        heads=heads,
        head_size=attention_width / heads,
        vocabulary=vocabulary,
        params=params,
        layer_params=layer,
        layer_active_params=layer_active,
        attention_width=attention_width,
        attention_params=attention,
        qkv_width=attention_width * (1 + 2 * group),
        mlp_params=mlp,
        ffn_hidden=width,
        mlp_matrices=matrices,
        experts=experts,
        active_experts=active_experts,
        embedding_params=embedding,
        outside_params=outside,
        adapter_params=adapters,
        adapter_rank=adapter_rank,
        adapter_inputs=adapter_inputs,
    )


def infer_heads(hidden: Times) -> Times:
    """64 wide up to 1.3B-parameter models, 128 wide above. Source: Brown et al. 2020, table 2.1."""
    return np.maximum(1.0, np.round(hidden / np.where(hidden < 2048, 64.0, 128.0)))


def _looks_tied(layers: Times, hidden: Times, vocabulary: Times, params: Times) -> Flags:
    """Where what one table leaves makes GPT-2's block, or two would leave next to nothing."""
    table = vocabulary * hidden
    tied_layer = (params - table) / (layers * hidden**2)
    is_block = (tied_layer > TIED_LAYER[0]) & (tied_layer < TIED_LAYER[1])
    return np.asarray(is_block | (params < 2.5 * table))
