"""What has each model's shape beside its sizes? A name that it may come from, and its counts."""

from abc import abstractmethod
from typing import Self

from pydantic import ValidationInfo, model_validator

from broadgauge.messages.model_shape import ModelShape
from broadgauge.specs.base import AS_STORED, Name, Spec


class KnownShape(Spec):
    """What every model's shape has beside its sizes."""

    like: str | None = None
    """A model of the catalog, such as `llama3-8b`, whose sizes are taken where none is given:
    `{like: llama3-8b, layers: 4}` has its layers' shape and fewer of them."""
    shape_of: Name | None = None
    """What `like` named, kept for the record once the sizes stand beside it."""

    @property
    @abstractmethod
    def shape(self) -> ModelShape:
        """The same for those who don't read experiments."""

    @property
    def parameters(self) -> int:
        """How many? The formula is messages/model_shape.py's."""
        return self.shape.parameters

    @property
    def flops_per_token(self) -> float:
        """Model FLOPs a token; the formula is messages/model_shape.py's."""
        return self.shape.flops_per_token

    @model_validator(mode="after")
    def _is_looked_up(self, info: ValidationInfo) -> Self:
        """Sizes of the catalog are filled in when an experiment is read (specs/known_models.py)."""
        if self.like is not None and info.context is not AS_STORED:
            raise ValueError(f"`like: {self.like}` is looked up where an experiment file is read")
        return self
