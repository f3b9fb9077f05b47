"""How many parameters has the model that is trained, and how many FLOPs is a token?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

TRAINED_FLOPS, FROZEN_FLOPS = 6.0, 4.0
"""Of a parameter and token: 2 forward, 2 for the gradient of its input, and 2 for its own gradient,
which frozen ones have not. Source: Kaplan et al. 2020 (arXiv 2001.08361), section 2.1; Hu et al.
2022 (LoRA, arXiv 2106.09685), section 4.2, for what is frozen."""
Linear = Literal["query_key_value", "query", "key", "value", "projection", "gate", "up", "down"]
"""The linear layers of a block; `projection` is attention's last."""


def model_flops_per_token(trained: Any, frozen: Any, layers: Any, width: Any, seq_len: Any) -> Any:
    """Model FLOPs a token, forward and backward: 6 N of what is trained, 4 N of what is frozen, and
    12·L·H·Q·T of attention, H·Q (`width`) being that of all heads. Numbers, or arrays of them.

    Without recomputation, and without the embeddings, which multiply nothing. Of frozen weights the
    first block's queries, keys and values need no gradient of their input either: that is counted.
    Source: Chowdhery et al. 2022 (PaLM, arXiv 2204.02311), appendix B.
    """
    return TRAINED_FLOPS * trained + FROZEN_FLOPS * frozen + 12.0 * layers * width * seq_len


@dataclass(frozen=True, slots=True, kw_only=True)
class GptShape:
    """Of a decoder-only transformer: GPT-2's block, pre-norm, GELU, learned positions."""

    kind: Literal["gpt"] = "gpt"
    layers: int
    hidden: int
    heads: int
    vocabulary: int
    seq_len: int
    is_head_tied: bool = True

    @property
    def linears(self) -> dict[Linear, tuple[int, int]]:
        """Inputs and outputs of a block's linear layers, each with a bias."""
        hidden = self.hidden
        return {
            "query_key_value": (hidden, 3 * hidden),
            "projection": (hidden, hidden),
            "up": (hidden, 4 * hidden),
            "down": (4 * hidden, hidden),
        }

    @property
    def block_parameters(self) -> int:
        """Of one block: attention 4H² + 4H, MLP 8H² + 5H, two norms 4H. Source: Radford et al. 2019
        (GPT-2), counted; tests/probes compares it with the built model."""
        return 12 * self.hidden**2 + 13 * self.hidden

    @property
    def parameters(self) -> int:
        """How many parameters? 12 L H² + 13 L H for the blocks, the tables of tokens and positions,
        the head where it is its own (it has no bias), the last norm."""
        tables = (1 if self.is_head_tied else 2) * self.vocabulary * self.hidden
        positions = self.seq_len * self.hidden
        return self.layers * self.block_parameters + tables + positions + 2 * self.hidden

    @property
    def multiplying_parameters(self) -> int:
        """All but the position embedding, which multiplies nothing, and an embedding of tokens
        that is not the head's, too."""
        table = 0 if self.is_head_tied else self.vocabulary * self.hidden
        return self.parameters - self.seq_len * self.hidden - table

    @property
    def attention_width(self) -> int:
        """Of all heads."""
        return self.hidden

    @property
    def flops_per_token(self) -> float:
        """Model FLOPs a token where all of it is trained."""
        return _all_trained(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaShape:
    """Of a decoder-only transformer: Llama's block, RMS norms, SwiGLU, rotary positions, fewer
    heads of keys and values than of queries, no biases."""

    kind: Literal["llama"] = "llama"
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocabulary: int
    seq_len: int
    is_head_tied: bool

    @property
    def linears(self) -> dict[Linear, tuple[int, int]]:
        """Inputs and outputs of a block's linear layers, none with a bias."""
        query, key = self.heads * self.head_dim, self.kv_heads * self.head_dim
        return {
            "query": (self.hidden, query),
            "key": (self.hidden, key),
            "value": (self.hidden, key),
            "projection": (query, self.hidden),
            "gate": (self.hidden, self.ffn),
            "up": (self.hidden, self.ffn),
            "down": (self.ffn, self.hidden),
        }

    @property
    def block_parameters(self) -> int:
        """Of one block: its linear layers, and two norms of H. Source: Touvron et al. 2023 (Llama,
        arXiv 2302.13971), section 2.2; Ainslie et al. 2023 (grouped queries, arXiv 2305.13245)."""
        products = sum(inputs * outputs for inputs, outputs in self.linears.values())
        return products + 2 * self.hidden

    @property
    def parameters(self) -> int:
        """How many parameters? Blocks, embedding, the head where it is its own, the last norm."""
        tables = (1 if self.is_head_tied else 2) * self.vocabulary * self.hidden
        return self.layers * self.block_parameters + tables + self.hidden

    @property
    def multiplying_parameters(self) -> int:
        """All but an embedding that is not the head's, too."""
        table = 0 if self.is_head_tied else self.vocabulary * self.hidden
        return self.parameters - table

    @property
    def attention_width(self) -> int:
        """Of all heads of queries."""
        return self.heads * self.head_dim

    @property
    def flops_per_token(self) -> float:
        """Model FLOPs a token where all of it is trained."""
        return _all_trained(self)


ModelShape = GptShape | LlamaShape


def _all_trained(shape: ModelShape) -> float:
    trained, width = shape.multiplying_parameters, shape.attention_width
    return float(model_flops_per_token(trained, 0, shape.layers, width, shape.seq_len))


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapters:
    """LoRA: beside a linear layer W of a block, frozen, B·A with a few rows between, trained.

    The layer gives W·x + alpha/rank · B·A·x. Source: Hu et al. 2022 (LoRA, arXiv 2106.09685),
    section 4.1.
    """

    rank: int
    alpha: float
    targets: tuple[Linear, ...]
    dropout_ratio: float = 0.0
    """Of the adapters' inputs, set to zero."""


def adapter_parameters(shape: ModelShape, targets: Sequence[Linear], rank: int) -> int:
    """Of one block: rank × (inputs + outputs) of each linear layer that has an adapter."""
    sizes = shape.linears
    return rank * sum(sum(sizes[target]) for target in targets)


def adapted_flops_per_token(shape: ModelShape, adapters: Adapters) -> float:
    """Model FLOPs a token where the adapters alone are trained."""
    each = adapter_parameters(shape, adapters.targets, adapters.rank)
    frozen, width = shape.multiplying_parameters, shape.attention_width
    return float(
        model_flops_per_token(shape.layers * each, frozen, shape.layers, width, shape.seq_len)
    )
