"""What is the shape of a Llama-like model that is trained?"""

from typing import Literal, Self

from pydantic import Field, model_validator

from broadgauge.messages.model_shape import LlamaShape
from broadgauge.specs.known_shape import KnownShape


class LlamaModel(KnownShape):
    """The shape of a decoder-only transformer with Llama's block: RMSNorm, SwiGLU, grouped-query
    attention, RoPE, no biases."""

    kind: Literal["llama"]
    """Llama's block; without it the model is `gpt`."""
    layers: int = Field(default=4, ge=1, le=512)
    """Number of transformer blocks."""
    hidden: int = Field(default=256, ge=8, le=65_536)
    """Hidden size; a multiple of `heads` unless `head_dim` is given."""
    heads: int = Field(default=4, ge=1, le=1024)
    """Attention heads of the queries."""
    kv_heads: int | None = Field(default=None, ge=1, le=1024)
    """Heads of keys and values, which divide `heads`; null: as many."""
    head_dim: int | None = Field(default=None, ge=2, le=4096, multiple_of=2)
    """Size of one head; null: hidden / heads."""
    ffn: int = Field(default=688, ge=8, le=1_000_000)
    """Width of the MLP, of each of its three matrices."""
    vocabulary: int = Field(default=256, ge=256, le=1_000_000)
    """Vocabulary size. Bytes are the tokens, so that only the first 256 are seen."""
    seq_len: int = Field(default=128, ge=1, le=1_048_576)
    """Tokens per sequence."""
    tied_head: bool = False
    """The output layer shares the token embedding's weights."""

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

    @property
    def shape(self) -> LlamaShape:
        """The same for those who don't read experiments."""
        return LlamaShape(
            layers=self.layers,
            hidden=self.hidden,
            heads=self.heads,
            kv_heads=self.heads if self.kv_heads is None else self.kv_heads,
            head_dim=self.hidden // self.heads if self.head_dim is None else self.head_dim,
            ffn=self.ffn,
            vocabulary=self.vocabulary,
            seq_len=self.seq_len,
            is_head_tied=self.tied_head,
        )
