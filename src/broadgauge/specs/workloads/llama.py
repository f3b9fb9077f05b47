"""What is the shape of a Llama-like model that is trained?"""

from typing import Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from broadgauge.messages.model_shape import Activation, Bias, LlamaShape
from broadgauge.specs.base import placed_error
from broadgauge.specs.workloads.model_base import ModelBase

EXPERT_MULTIPLE = 8
"""Rows of bfloat16 begin at whole 16 bytes. Source: torch 2.11,
aten/src/ATen/native/GroupedMMUtils.h, `_grouped_mm_validate_inputs`."""


class LlamaModel(ModelBase):
    """The shape of a decoder-only transformer with Llama's block: RMSNorm, a gated MLP,
    grouped-query attention, RoPE; biases, further norms and a mixture of experts where a model has
    them."""

    kind: Literal["llama"]
    """Llama's block; without it the model is `gpt`."""
    hidden: int = Field(default=256, ge=8, le=65_536)
    """Hidden size; a multiple of `heads` unless `head_dim` is given."""
    heads: int = Field(default=4, ge=1, le=1024)
    """Attention heads of the queries."""
    kv_heads: int | None = Field(default=None, ge=1, le=1024)
    """Heads of keys and values, which divide `heads`; null: as many."""
    head_dim: int | None = Field(default=None, ge=2, le=4096, multiple_of=2)
    """Size of one head; null: hidden / heads."""
    ffn_hidden: int = Field(default=688, ge=8, le=1_000_000)
    """Width of the MLP, of each of its three matrices; of each expert in a mixture."""
    vocabulary: int = Field(default=256, ge=256, le=1_000_000)
    """Vocabulary size. Bytes are the tokens, so that only the first 256 are seen."""
    seq_len: int = Field(default=128, ge=1, le=1_048_576)
    """Tokens per sequence."""
    tied_head: bool = False
    """The output layer shares the token embedding's weights."""
    bias: Bias = "none"
    """Linear layers with a bias: none; `qkv`, as in Qwen 2; `attention`; `all`."""
    activation: Activation = "silu"
    """Of the gated MLP: `silu` (SwiGLU), or `gelu` (GEGLU, as in Gemma)."""
    norms_per_layer: Literal[2, 4] = 2
    """Four: also behind attention and behind the MLP, as in Gemma 3."""
    norms_queries_and_keys: bool = False
    """One norm over each head's queries and one over its keys, as in Qwen 3 and Gemma 3."""
    experts: int = Field(default=1, ge=1, le=1024)
    """MLPs of a block. More than 1: a mixture of experts, as in Mixtral and gpt-oss; `hidden` and
    `ffn_hidden` are then multiples of 8."""
    experts_per_token: int | None = Field(default=None, ge=1, le=1024)
    """Experts that the router has a token pass: of a mixture two or more; null: it is none."""

    @field_validator("experts_per_token")
    @classmethod
    def _is_null_without_experts(cls, given: int | None, info: ValidationInfo) -> int | None:
        """One of one, as older records have it: the same case as null."""
        return None if given == 1 and info.data.get("experts") == 1 else given

    @model_validator(mode="after")
    def _heads_divide(self) -> Self:
        if self.head_dim is None and self.hidden % (2 * self.heads):
            raise ValueError(
                f"hidden {self.hidden} does not divide by heads {self.heads} into heads of an even "
                "size, which rotary positions need"
            )
        if self.kv_heads is not None and self.heads % self.kv_heads:
            raise ValueError(f"heads {self.heads} does not divide by kv_heads {self.kv_heads}")
        return self

    @model_validator(mode="after")
    def _experts_are_chosen(self) -> Self:
        chosen = self.experts_per_token
        if self.experts == 1:
            if chosen is not None:
                message = f"{chosen} experts a token, of 1"
                raise placed_error(message, ("experts_per_token",), f"`experts: {max(8, chosen)}`")
            return self
        if chosen is None:
            message = "a mixture of experts needs `experts_per_token`: how many a token passes"
            raise placed_error(message, ("experts",), "`experts_per_token: 2`")
        if chosen > self.experts:
            message = f"{chosen} experts a token, of {self.experts}"
            raise placed_error(
                message, ("experts_per_token",), f"`experts_per_token: {self.experts}`"
            )
        if chosen == 1:
            raise placed_error(
                "a router whose token passes one expert is not trained: that one's weight is 1",
                ("experts_per_token",),
                "`experts_per_token: 2`",
            )
        return self

    @model_validator(mode="after")
    def _experts_have_whole_rows(self) -> Self:
        for key, width in (("hidden", self.hidden), ("ffn_hidden", self.ffn_hidden)):
            if self.experts > 1 and width % EXPERT_MULTIPLE:
                raise placed_error(
                    f"`{key}` of a mixture of experts is a multiple of {EXPERT_MULTIPLE}",
                    (key,),
                    f"`{key}: {EXPERT_MULTIPLE * max(1, width // EXPERT_MULTIPLE)}`",
                )
        return self

    @property
    def shape(self) -> LlamaShape:
        """The same for those who don't read experiments."""
        return LlamaShape(
            layers=self.layers,
            hidden=self.hidden,
            heads=self.heads,
            kv_heads=self.heads if self.kv_heads is None else self.kv_heads,
            head_dim=self.hidden // self.heads if self.head_dim is None else self.head_dim,
            ffn_hidden=self.ffn_hidden,
            vocabulary=self.vocabulary,
            seq_len=self.seq_len,
            is_head_tied=self.tied_head,
            bias=self.bias,
            activation=self.activation,
            norms_per_layer=self.norms_per_layer,
            norms_queries_and_keys=self.norms_queries_and_keys,
            experts=self.experts,
            experts_per_token=1 if self.experts_per_token is None else self.experts_per_token,
        )
