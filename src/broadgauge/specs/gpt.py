"""What is the shape of the model that is trained, and in which numbers does it compute?"""

from typing import Literal

from pydantic import Field, model_validator

from broadgauge.specs.base import Spec

Strategy = Literal["ddp", "fsdp"]
DataType = Literal["float32", "bfloat16"]
DATA_TYPE_BYTES: dict[DataType, int] = {"float32": 4, "bfloat16": 2}


class GptModel(Spec):
    """The shape of a decoder-only transformer (GPT-2's block: pre-norm, GELU, learned positions).

    Bytes are the tokens, so the vocabulary is 256 unless another is named.
    """

    layers: int = Field(default=4, ge=1, le=512)
    """Blocks."""
    hidden: int = Field(default=256, ge=8, le=65_536)
    """Width; a multiple of `heads`."""
    heads: int = Field(default=4, ge=1, le=1024)
    """Of attention."""
    vocabulary: int = Field(default=256, ge=256, le=1_000_000)
    """Rows of the token embedding, which is the head too."""
    seq_len: int = Field(default=128, ge=1, le=1_048_576)
    """Tokens a sequence."""

    @model_validator(mode="after")
    def _heads_divide(self) -> "GptModel":
        if self.hidden % self.heads:
            raise ValueError(f"hidden {self.hidden} does not divide by heads {self.heads}")
        return self

    @property
    def parameters(self) -> int:
        """How many parameters? 12 L H² + 13 L H for the blocks, embeddings tied to the head.

        A block: attention 4H² + 4H, MLP 8H² + 5H, two norms 4H. Source: Radford et al. 2019
        (GPT-2), counted; tests/probes compares it with the built model.
        """
        blocks = self.layers * (12 * self.hidden**2 + 13 * self.hidden)
        embeddings = (self.vocabulary + self.seq_len) * self.hidden
        return blocks + embeddings + 2 * self.hidden

    @property
    def flops_per_token(self) -> float:
        """Model FLOPs a token, forward and backward: 6N + 12·L·H·Q·T, H·Q being the hidden size.

        Source: Chowdhery et al. 2022 (PaLM), appendix B; N without the position embedding,
        which multiplies nothing.
        """
        weights = self.parameters - self.seq_len * self.hidden
        return 6.0 * weights + 12.0 * self.layers * self.hidden * self.seq_len
