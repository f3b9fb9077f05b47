"""What is kept in a record of the time that its whole training takes, start to end?

    total = start_up + model_load + training + evaluation + checkpoints + other

A part that nothing tells is null, with the reason in `unknown`, and its time is in another part or
in `other`: the known ones add up to the total all the same.
"""

from enum import StrEnum

from pydantic import Field

from broadgauge.specs.base import StoredModel


class CompletionPart(StrEnum):
    """In the order in which a training goes through them."""

    START_UP = "start_up"
    """From the start of the ranks' processes to their process group."""
    MODEL_LOAD = "model_load"
    """The data opened, the model built, its weights drawn or read."""
    TRAINING = "training"
    """Steps."""
    EVALUATION = "evaluation"
    CHECKPOINTS = "checkpoints"
    OTHER = "other"
    """Of our trainer what the first steps took beyond later ones (compiling, first allocations);
    of a command whatever no other part has."""


class Completion(StoredModel):
    """Time to completion of the training that one trial ran, or ran a part of."""

    total_s: float
    parts_s: dict[str, float | None] = Field(default_factory=dict)
    """By CompletionPart, all of them; null: unknown. Those that are known add up to `total_s`."""
    measured_ratio: float
    """Share of the training's steps that this trial ran. Below 1 `training` is extrapolated from
    the measured steps to the epochs of the data set."""
    unknown: dict[str, str] = Field(default_factory=dict)
    """By part that is null: why, and where its time is."""

    @property
    def is_extrapolated(self) -> bool:
        return self.measured_ratio < 1
