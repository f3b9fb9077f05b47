"""Which small matrices are trained in the place of the model's weights?"""

from typing import Self

from pydantic import Field, model_validator

from broadgauge.messages.adapters import Adapters
from broadgauge.messages.model_shape import Linear, ModelShape
from broadgauge.specs.base import Spec


class Lora(Spec):
    """LoRA: the model's weights are frozen in the type of the arithmetic, and adapters beside
    linear layers of its blocks are trained and synchronised, in float32."""

    rank: int = Field(default=16, ge=1, le=4096)
    """Rows between an adapter's two matrices."""
    alpha: float = Field(default=32, gt=0, le=1_000_000)
    """An adapter's output is multiplied by alpha / rank."""
    targets: tuple[Linear, ...] | None = Field(default=None, min_length=1)
    """Linear layers with an adapter, of `query`, `key`, `value`, `projection`, `gate`, `up` and
    `down` (`query_key_value`, `projection`, `up`, `down` in a GPT); null: all of them."""

    dropout_ratio: float = Field(default=0, ge=0, lt=1)
    """Share of what adapters are given that is set to zero."""

    @model_validator(mode="after")
    def _once_each(self) -> Self:
        for i, target in enumerate(self.targets or ()):
            if target in (self.targets or ())[:i]:
                raise ValueError(f"`{target}` stands twice in `targets`")
        return self

    def adapters(self, shape: ModelShape) -> Adapters:
        """The same with nothing left to choose."""
        return Adapters(
            rank=self.rank,
            alpha=self.alpha,
            targets=self.targets or tuple(shape.linears),
            dropout_ratio=self.dropout_ratio,
        )
