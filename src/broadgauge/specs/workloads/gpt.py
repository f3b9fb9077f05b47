"""What is the shape of a GPT that is trained, and in which numbers does it compute?"""

from typing import Literal

from pydantic import Field, model_validator

from broadgauge.messages.model_shape import GptShape
from broadgauge.messages.vocabulary import DATA_TYPE_BYTES, DataType, Strategy
from broadgauge.specs.workloads.model_base import ModelBase

__all__ = ["DATA_TYPE_BYTES", "DataType", "GptModel", "Strategy"]


class GptModel(ModelBase):
    """The shape of a decoder-only transformer (GPT-2's block: pre-norm, GELU, learned positions).

    Bytes are the tokens, so the vocabulary is 256 unless another is named.
    """

    kind: Literal["gpt"] = "gpt"
    """GPT-2's block; `llama` is the other."""
    hidden: int = Field(default=256, ge=8, le=65_536)
    """Hidden size; a multiple of `heads`."""
    heads: int = Field(default=4, ge=1, le=1024)
    """Attention heads."""
    vocabulary: int = Field(default=256, ge=2, le=1_000_000)
    """Vocabulary size. Below 256 a text's characters are the tokens, as in minGPT."""
    seq_len: int = Field(default=128, ge=1, le=1_048_576)
    """Tokens per sequence."""
    tied_head: bool = True
    """The output layer shares the token embedding's weights; minGPT's does not."""

    @model_validator(mode="after")
    def _heads_divide(self) -> "GptModel":
        if self.hidden % self.heads:
            raise ValueError(f"hidden {self.hidden} does not divide by heads {self.heads}")
        return self

    @property
    def shape(self) -> GptShape:
        """The same for those who don't read experiments."""
        return GptShape(
            layers=self.layers,
            hidden=self.hidden,
            heads=self.heads,
            vocabulary=self.vocabulary,
            seq_len=self.seq_len,
            is_head_tied=self.tied_head,
        )
