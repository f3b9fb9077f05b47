"""What is trained when it is no GPT? A decoder-only transformer with Llama's block.

RMS norms before attention and MLP, rotary positions, groups of query heads that share a head of
keys and values, a gated MLP, a head of its own unless it is tied. As a shape says: biases, norms
behind attention and MLP, norms of queries and keys, a mixture of MLPs. Source: Touvron et al. 2023
(Llama, arXiv 2302.13971), section 2.2; Ainslie et al. 2023 (grouped queries, arXiv 2305.13245);
Gemma Team 2025 (Gemma 3, arXiv 2503.19786), section 2, for the further norms. The MLP is mlp.py's.
Shapes: B sequences, T tokens, H hidden, V vocabulary, N heads of D.
"""

from typing import Any

import torch
from torch import nn

from broadgauge.messages.model_shape import LlamaShape
from broadgauge.messages.vocabulary import AttentionName
from broadgauge.probes.training.attention import attend
from broadgauge.probes.training.loss import Predicting
from broadgauge.probes.training.mlp import Experts, GatedMlp, linear_of

NORM_EPSILON = 1e-5
ROTARY_BASE = 500_000.0
"""Llama 3's, for long sequences; how long a step takes does not depend on it. Source: Grattafiori
et al. 2024 (Llama 3, arXiv 2407.21783), section 3.2."""


class LlamaAttention(nn.Module):  # type: ignore[misc]  # torch is Any to the type checker
    way: AttentionName = "sdpa"

    def __init__(self, shape: LlamaShape) -> None:
        super().__init__()
        self.head_dim = shape.head_dim
        self.query = linear_of(shape, "query")
        self.key = linear_of(shape, "key")
        self.value = linear_of(shape, "value")
        self.projection = linear_of(shape, "projection")
        is_normed = shape.norms_queries_and_keys
        self.query_norm = _norm(shape.head_dim) if is_normed else nn.Identity()
        self.key_norm = _norm(shape.head_dim) if is_normed else nn.Identity()

    def forward(self, x_bth: Any, cos_td: Any, sin_td: Any) -> Any:
        query, key, value = (
            self._heads(linear(x_bth)) for linear in (self.query, self.key, self.value)
        )
        query = rotated(self.query_norm(query), cos_td, sin_td)
        key = rotated(self.key_norm(key), cos_td, sin_td)
        mixed = attend(query, key, value, self.way)
        return self.projection(mixed.transpose(1, 2).flatten(2))

    def _heads(self, x_btw: Any) -> Any:
        """[B, T, N·D] → [B, N, T, D]."""
        return x_btw.unflatten(2, (-1, self.head_dim)).transpose(1, 2)


class LlamaLayer(nn.Module):  # type: ignore[misc]
    def __init__(self, shape: LlamaShape) -> None:
        super().__init__()
        has_norms_behind = shape.norms_per_layer == 4
        self.attention_norm = _norm(shape.hidden)
        self.attention = LlamaAttention(shape)
        self.mixed_norm = _norm(shape.hidden) if has_norms_behind else nn.Identity()
        self.mlp_norm = _norm(shape.hidden)
        self.mlp = Experts(shape) if shape.is_mixture else GatedMlp(shape)
        self.added_norm = _norm(shape.hidden) if has_norms_behind else nn.Identity()

    def forward(self, x_bth: Any, cos_td: Any, sin_td: Any) -> Any:
        mixed_bth = self.attention(self.attention_norm(x_bth), cos_td, sin_td)
        x_bth = x_bth + self.mixed_norm(mixed_bth)
        return x_bth + self.added_norm(self.mlp(self.mlp_norm(x_bth)))


class Llama(Predicting):
    """int64[B, T] tokens and the tokens that follow → the mean cross entropy, in nats."""

    def __init__(self, shape: LlamaShape) -> None:
        super().__init__()
        self.head_dim = shape.head_dim
        self.tokens = nn.Embedding(shape.vocabulary, shape.hidden)
        self.layers = nn.ModuleList(LlamaLayer(shape) for _ in range(shape.layers))
        self.norm = _norm(shape.hidden)
        self.head = None
        if not shape.is_head_tied:
            self.head = nn.Linear(shape.hidden, shape.vocabulary, bias=False)

    def forward(self, tokens_bt: Any, next_tokens_bt: Any) -> Any:
        turns = rotations(tokens_bt.shape[1], self.head_dim, tokens_bt.device)
        x_bth = self.tokens(tokens_bt)
        for layer in self.layers:
            x_bth = layer(x_bth, *turns)
        return self.loss(x_bth, next_tokens_bt)


def rotations(tokens: int, head_dim: int, device: Any) -> tuple[Any, Any]:
    """Cosines and sines float32[T, D] of each token's angles, D/2 of them and the same again.

    Source: Su et al. 2021 (RoFormer, arXiv 2104.09864), equations 15 and 34.
    """
    exponents_d = torch.arange(0, head_dim, 2, device=device, dtype=torch.float32) / head_dim
    places_t = torch.arange(tokens, device=device, dtype=torch.float32)
    angles_td = torch.outer(places_t, ROTARY_BASE**-exponents_d).repeat(1, 2)
    return angles_td.cos(), angles_td.sin()


def rotated(x_bntd: Any, cos_td: Any, sin_td: Any) -> Any:
    """Each pair (x_i, x_(i+D/2)) turned by its angle, in float32, as x came."""
    first, second = x_bntd.float().chunk(2, dim=-1)
    turned = torch.cat((-second, first), dim=-1)
    return (x_bntd.float() * cos_td + turned * sin_td).type_as(x_bntd)


def _norm(width: int) -> Any:
    return nn.RMSNorm(width, eps=NORM_EPSILON)
