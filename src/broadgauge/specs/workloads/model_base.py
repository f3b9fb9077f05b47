"""What has each trained model beside its sizes? Counts, and the model whose shape it has."""

from abc import abstractmethod
from typing import Self

from pydantic import Field, ValidationInfo, model_validator

from broadgauge.messages.model_shape import ModelShape
from broadgauge.specs.base import AS_STORED, Name, Spec
from broadgauge.specs.units import show_parameters


class ModelBase(Spec):
    """What every trained model has beside its sizes."""

    layers: int = Field(default=4, ge=1, le=512)
    """Number of transformer blocks."""
    like: str | None = None
    """A model of the catalog, such as `llama-3.1-8b`, or the path of a Hugging Face `config.json`
    from this file's folder: sizes that are not given are its own. `model: llama-3.1-8b` is the
    same in one word."""
    scale: float | None = Field(default=None, gt=0, le=1)
    """With `like`: this share of its layers, at least one. `layers` says their number instead."""
    shape_of: Name | None = None
    """Kept for the record: what `like` named, its sizes standing beside it."""
    shape_of_layers: int | None = Field(default=None, ge=1)
    """Kept for the record: how many layers that model has. More than `layers`: this is a smaller
    twin of the same layer shape."""

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

    @property
    def is_twin(self) -> bool:
        """Has it fewer layers than the model whose shape it has?"""
        return self.shape_of_layers is not None and self.layers < self.shape_of_layers

    @property
    def named_in_words(self) -> str | None:
        """`llama3-8b, 8 of its 32 layers, 2.80B parameters`; None: it was given by numbers."""
        if self.shape_of is None:
            return None
        layers = f"{self.layers} of its {self.shape_of_layers} layers, " if self.is_twin else ""
        return f"{self.shape_of}, {layers}{self.parameters_in_words}"

    @property
    def parameters_in_words(self) -> str:
        """`8.03B parameters`; of a mixture of experts `46.7B parameters, 12.9B active,
        embedding included`. (Some model cards leave the embedding out of what is active.)"""
        words = f"{show_parameters(self.parameters)} parameters"
        active = self.shape.active_parameters
        if active == self.parameters:
            return words
        return f"{words}, {show_parameters(active)} active, embedding included"

    @model_validator(mode="after")
    def _is_looked_up(self, info: ValidationInfo) -> Self:
        """Sizes of the catalog are filled in when an experiment is read (specs/text/like.py)."""
        if info.context is AS_STORED:
            return self
        if self.like is not None:
            raise ValueError(f"`like: {self.like}` is looked up where an experiment file is read")
        if self.scale is not None:
            raise ValueError("`scale` is a share of the layers of a model that `like` names")
        return self
