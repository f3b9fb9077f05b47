"""What is a rank told of the checkpoints that a training saves, and what does it say of each?"""

from dataclasses import dataclass, field
from typing import Literal

from broadgauge.messages.storage import CheckpointFormat

SAVED_BYTES = 12
"""Of a parameter that is trained: itself and AdamW's two moments, float32 each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainCheckpoints:
    """Saves of model and optimizer within the measured steps that communicate, on the task's
    storage."""

    every_steps: int
    format: CheckpointFormat
    is_sharded: bool
    """False: rank 0 gathers and saves all of it."""
    keep: int
    """The newest complete ones that stay while the training goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointBegun:
    """Said before a save, so that one that a node did not live to finish is known."""

    type: Literal["block"] = "block"
    kind: Literal["checkpoint_begun"] = "checkpoint_begun"
    trial_id: str
    after_step: int
    """Measured steps before it."""
    name: str
    """Its folder's, on the storage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSaved:
    """Said when this rank's part is durable; by rank 0 once the whole checkpoint is published."""

    type: Literal["block"] = "block"
    kind: Literal["checkpoint"] = "checkpoint"
    trial_id: str
    after_step: int
    name: str
    stall_s: float
    """How long this rank's training stood still for its own save, an earlier one in flight waited
    for; the wait for slower ranks is not in it."""
    in_flight_s: float
    """Of the stall: the wait for the earlier save."""
    durable_s: float | None
    """From the begin of the save, an earlier one's wait left out, until this rank's part was
    durable; None: not known."""
    durable_evidence: str
    num_bytes: int
    """That this rank wrote."""
    parts_s: dict[str, float] = field(default_factory=dict)
    """In the words of a StorageBlock's."""
