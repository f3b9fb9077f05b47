"""How many parameters has the model that is trained, and how many FLOPs is a token?

Two families: GPT-2's block, and Llama's with the options that later models of its kind have, a
mixture of experts in the place of its MLP among them.
"""

from dataclasses import dataclass
from typing import Any, Literal

TRAINED_FLOPS = 6.0
"""Of a parameter and token: 2 forward, 2 for the gradient of its input, 2 for its own. Source:
Kaplan et al. 2020 (arXiv 2001.08361), section 2.1."""
Linear = Literal["query_key_value", "query", "key", "value", "projection", "gate", "up", "down"]
"""The linear layers of a block; `projection` is attention's last."""
Bias = Literal["none", "qkv", "attention", "all"]
"""Which linear layers have one: `qkv` queries, keys and values; `attention` its projection, too;
`all` the MLP's, too."""
Activation = Literal["silu", "gelu"]
"""Of a gated MLP: SwiGLU's, or GEGLU's in its tanh form. Source: Shazeer 2020 (arXiv 2002.05202).
"""
_BIASED: dict[Bias, frozenset[Linear]] = {
    "none": frozenset(),
    "qkv": frozenset(("query", "key", "value")),
    "attention": frozenset(("query", "key", "value", "projection")),
    "all": frozenset(("query", "key", "value", "projection", "gate", "up", "down")),
}


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
    def is_mixture(self) -> bool:
        return False

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
    def active_parameters(self) -> int:
        """Those that a token passes: all of them."""
        return self.parameters

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
        """Model FLOPs a token, forward and backward."""
        return _flops_per_token(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaShape:
    """Of a decoder-only transformer: Llama's block, RMS norms, a gated MLP, rotary positions, fewer
    heads of keys and values than of queries; biases, further norms and several MLPs, of which a
    token passes a few, as some models have them."""

    kind: Literal["llama"] = "llama"
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn_hidden: int
    """Of each of an MLP's three matrices."""
    vocabulary: int
    seq_len: int
    is_head_tied: bool
    bias: Bias = "none"
    activation: Activation = "silu"
    norms_per_layer: Literal[2, 4] = 2
    """Four: also behind attention and behind the MLP, as in Gemma."""
    norms_queries_and_keys: bool = False
    """One norm over each head's queries, and one over its keys, which all heads share."""
    experts: int = 1
    """MLPs of a block. More than one: a mixture, with a router that chooses."""
    experts_per_token: int = 1
    """MLPs that a token passes."""

    @property
    def is_mixture(self) -> bool:
        return self.experts > 1

    @property
    def linears(self) -> dict[Linear, tuple[int, int]]:
        """Inputs and outputs of a block's linear layers, in the order of their use. A mixture's
        experts are none: their matrices lie together."""
        query, key = self.heads * self.head_dim, self.kv_heads * self.head_dim
        attention: dict[Linear, tuple[int, int]] = {
            "query": (self.hidden, query),
            "key": (self.hidden, key),
            "value": (self.hidden, key),
            "projection": (query, self.hidden),
        }
        return attention if self.is_mixture else attention | self.mlp

    @property
    def mlp(self) -> dict[Linear, tuple[int, int]]:
        """Inputs and outputs of an MLP's, of each expert's in a mixture."""
        return {
            "gate": (self.hidden, self.ffn_hidden),
            "up": (self.hidden, self.ffn_hidden),
            "down": (self.ffn_hidden, self.hidden),
        }

    def has_bias(self, linear: Linear) -> bool:
        return linear in _BIASED[self.bias]

    @property
    def router_has_bias(self) -> bool:
        return self.bias == "all"

    @property
    def block_parameters(self) -> int:
        """Of one block: its linear layers, experts and norms. Source: Touvron et al. 2023 (Llama,
        arXiv 2302.13971), section 2.2; Ainslie et al. 2023 (grouped queries, arXiv 2305.13245);
        Jiang et al. 2024 (Mixtral, arXiv 2401.04088), section 2.1, for experts."""
        return self._block_parameters(self.experts)

    @property
    def parameters(self) -> int:
        """How many parameters? Blocks, embedding, the head where it is its own, the last norm."""
        return self._parameters(self.experts)

    @property
    def active_parameters(self) -> int:
        """Those that a token passes: of a mixture's experts the chosen ones."""
        return self._parameters(self.experts_per_token)

    @property
    def multiplying_parameters(self) -> int:
        """All that a token passes but an embedding that is not the head's, too."""
        table = 0 if self.is_head_tied else self.vocabulary * self.hidden
        return self.active_parameters - table

    def _parameters(self, experts: int) -> int:
        tables = (1 if self.is_head_tied else 2) * self.vocabulary * self.hidden
        return self.layers * self._block_parameters(experts) + tables + self.hidden

    def _block_parameters(self, experts: int) -> int:
        found = self._weights_of(self.linears)
        if self.is_mixture:
            found += experts * self._weights_of(self.mlp)
            found += self.experts * (self.hidden + self.router_has_bias)
        of_heads = 2 * self.head_dim if self.norms_queries_and_keys else 0
        return found + self.norms_per_layer * self.hidden + of_heads

    def _weights_of(self, linears: dict[Linear, tuple[int, int]]) -> int:
        products = sum(inputs * outputs for inputs, outputs in linears.values())
        return products + sum(out for name, (_, out) in linears.items() if self.has_bias(name))

    @property
    def attention_width(self) -> int:
        """Of all heads of queries."""
        return self.heads * self.head_dim

    @property
    def flops_per_token(self) -> float:
        """Model FLOPs a token, forward and backward."""
        return _flops_per_token(self)


ModelShape = GptShape | LlamaShape


def _flops_per_token(shape: Any) -> float:
    """6 N of what multiplies, and 12·L·H·Q·T of attention, H·Q being the width of all heads.

    Without recomputation. Source: Chowdhery et al. 2022 (PaLM, arXiv 2204.02311), appendix B.
    """
    of_attention = 12.0 * shape.layers * shape.attention_width * shape.seq_len
    return float(TRAINED_FLOPS * shape.multiplying_parameters + of_attention)
