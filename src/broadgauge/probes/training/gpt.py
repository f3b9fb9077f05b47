"""What is trained? A decoder-only transformer with GPT-2's block, plain enough to read.

Pre-norm, GELU, learned positions, the head tied to the embedding or its own, no dropout. Source:
Radford et al. 2019 (GPT-2); the initial weights are drawn in weights.py. Llama's block is in
llama.py.
Shapes: B sequences, T tokens, H hidden, V vocabulary.
"""

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from broadgauge.messages.model_shape import GptShape
from broadgauge.messages.vocabulary import AttentionName
from broadgauge.probes.training.attention import attend
from broadgauge.probes.training.loss import Predicting


class GptAttention(nn.Module):  # type: ignore[misc]  # torch is Any to the type checker
    way: AttentionName = "sdpa"

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query_key_value = nn.Linear(hidden, 3 * hidden)
        self.projection = nn.Linear(hidden, hidden)

    def forward(self, x_bth: Any) -> Any:
        batch, tokens, hidden = x_bth.shape
        parts = self.query_key_value(x_bth).view(batch, tokens, 3, self.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = attend(query, key, value, self.way)
        return self.projection(mixed.transpose(1, 2).reshape(batch, tokens, hidden))


class GptLayer(nn.Module):  # type: ignore[misc]
    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(hidden)
        self.attention = GptAttention(hidden, heads)
        self.mlp_norm = nn.LayerNorm(hidden)
        self.up = nn.Linear(hidden, 4 * hidden)
        self.down = nn.Linear(4 * hidden, hidden)

    def forward(self, x_bth: Any) -> Any:
        x_bth = x_bth + self.attention(self.attention_norm(x_bth))
        return x_bth + self.down(functional.gelu(self.up(self.mlp_norm(x_bth))))


class Gpt(Predicting):
    """int64[B, T] tokens and the tokens that follow → the mean cross entropy, in nats."""

    def __init__(self, shape: GptShape) -> None:
        super().__init__()
        self.tokens = nn.Embedding(shape.vocabulary, shape.hidden)
        self.positions = nn.Embedding(shape.seq_len, shape.hidden)
        self.layers = nn.ModuleList(
            GptLayer(shape.hidden, shape.heads) for _ in range(shape.layers)
        )
        self.norm = nn.LayerNorm(shape.hidden)
        self.head = None
        if not shape.is_head_tied:
            self.head = nn.Linear(shape.hidden, shape.vocabulary, bias=False)

    def forward(self, tokens_bt: Any, next_tokens_bt: Any) -> Any:
        places_t = torch.arange(tokens_bt.shape[1], device=tokens_bt.device)
        x_bth = self.tokens(tokens_bt) + self.positions(places_t)
        for layer in self.layers:
            x_bth = layer(x_bth)
        return self.loss(x_bth, next_tokens_bt)
