"""When does a training save checkpoints, in which form?"""

from pydantic import Field

from broadgauge.messages.storage import CheckpointFormat
from broadgauge.specs.base import Spec


class Checkpoints(Spec):
    """Saves of model and optimizer in the measured steps, on the case's storage."""

    every_steps: int = Field(ge=1, le=1_000_000)
    """Steps from one save to the next."""
    format: CheckpointFormat = "dcp"
    """Who saves, as in a workload of kind `storage`."""
    is_sharded: bool = True
    """Each rank saves its part; false: rank 0 gathers all of it."""
    keep: int = Field(default=2, ge=1, le=1000)
    """The newest that stay; older ones of this trial are removed."""
