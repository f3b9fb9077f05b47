"""What is the shape of the model that is trained, and in which numbers does it compute?"""

from pydantic import Field, model_validator

from broadgauge.messages.model_shape import GptShape
from broadgauge.messages.vocabulary import DATA_TYPE_BYTES, DataType, Strategy
from broadgauge.specs.base import Spec

__all__ = ["DATA_TYPE_BYTES", "DataType", "GptModel", "Strategy"]


class GptModel(Spec):
    """The shape of a decoder-only transformer (GPT-2's block: pre-norm, GELU, learned positions).

    Bytes are the tokens, so the vocabulary is 256 unless another is named.
    """

    layers: int = Field(default=4, ge=1, le=512)
    """Number of transformer blocks."""
    hidden: int = Field(default=256, ge=8, le=65_536)
    """Hidden size; a multiple of `heads`."""
    heads: int = Field(default=4, ge=1, le=1024)
    """Attention heads."""
    vocabulary: int = Field(default=256, ge=256, le=1_000_000)
    """Vocabulary size; the output layer shares the token embedding's weights."""
    seq_len: int = Field(default=128, ge=1, le=1_048_576)
    """Tokens per sequence."""

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
        )

    @property
    def parameters(self) -> int:
        """How many? The formula is messages/model_shape.py's."""
        return self.shape.parameters

    @property
    def flops_per_token(self) -> float:
        """Model FLOPs a token; the formula is messages/model_shape.py's."""
        return self.shape.flops_per_token
