"""Which checkpoints did a case save, all its good trials together?"""

from dataclasses import dataclass

from broadgauge.results.model import CaseSummary
from broadgauge.specs.checkpoint_rows import CheckpointRow

CHECKPOINT_SERIES = "checkpoint_stall_s"
"""By measured step: what training stood still for a save after it; 0 where there was none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedCheckpoints:
    """Of one case."""

    rows: tuple[CheckpointRow, ...]
    """In the order of trials and steps."""
    num_trials: int

    @property
    def slowest(self) -> CheckpointRow | None:
        """The one for which training stood still longest; None: of none it is known."""
        known = [row for row in self.rows if row.stall_s is not None]
        return max(known, key=lambda row: row.stall_s or 0.0, default=None)


def saved_checkpoints(summary: CaseSummary) -> SavedCheckpoints | None:
    """None: it saved none."""
    saving = [record for record in summary.good if record.checkpoints]
    if not saving:
        return None
    rows = tuple(row for record in saving for row in record.checkpoints)
    return SavedCheckpoints(rows=rows, num_trials=len(saving))
