"""What is kept of one checkpoint that a training saved? All ranks merged, the slowest deciding."""

from collections.abc import Sequence

from pydantic import Field

from broadgauge.specs.base import StoredModel

MOST_CHECKPOINT_ROWS = 64
"""In a record, which is one line; of more saves the newest."""


class CheckpointRow(StoredModel):
    """One save, within the measured steps that communicate."""

    after_step: int
    """Measured steps before it."""
    name: str = ""
    """Its folder's on the storage, while it was there."""
    stall_s: float | None = None
    """How long training stood still: from the end of the step before to the begin of the next,
    until the slowest rank was ready. None: it did not come to an end."""
    slowest_rank: int | None = None
    """Whose own save took longest; None: one rank, or not known."""
    slowest_stall_s: float | None = None
    """That rank's own."""
    others_stall_s: float | None = None
    """Median of the other ranks' own: what training would have stood still without a straggler."""
    in_flight_s: float = 0.0
    """Of the slowest rank's stall: it waited for the save before, which was still in flight."""
    durable_s: float | None = None
    """From the begin of the save until the last rank's part was durable; None: `problem` says why,
    or the storage can't be asked."""
    durable_evidence: str = ""
    num_bytes: int = 0
    """Of all ranks."""
    parts_s: dict[str, float] = Field(default_factory=dict)
    """Of the slowest rank."""
    steps_beside: int = 0
    """Measured steps that began while it was written in the background."""
    slowed_s: float | None = None
    """What those took longer than as many steps beside no save; None: there are none of one kind.
    """
    problem: str = ""
    """Why it is no complete checkpoint: who had not finished when the trial ended."""

    @property
    def is_complete(self) -> bool:
        """All ranks' parts are there, and it is published."""
        return not self.problem

    @property
    def gbyte_per_s(self) -> float | None:
        """Its bytes over the time until it was durable."""
        return self.num_bytes / self.durable_s / 1e9 if self.durable_s else None


def last_complete(rows: Sequence[CheckpointRow]) -> CheckpointRow | None:
    """What a job would go on from; None: it would begin from the start."""
    return next((row for row in reversed(rows) if row.is_complete), None)
