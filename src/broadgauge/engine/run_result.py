"""How did a run end, in numbers and in a sentence?"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from broadgauge.specs.errors import ExitCode
from broadgauge.specs.plan import Plan
from broadgauge.specs.records.record import Record, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """How did it end, counted over everything stored (earlier sessions too)?"""

    interrupted_by: int | None
    """The signal's number; None: every planned trial has its record."""
    num_trials: int
    num_ok: int
    num_failed: int
    """Time-outs among them."""
    num_skipped: int
    message: str

    @property
    def exit_code(self) -> ExitCode:
        """Source: specs/errors.py."""
        if self.interrupted_by is not None:
            return ExitCode(128 + self.interrupted_by)
        return ExitCode.TRIALS_FAILED if self.num_failed or self.num_skipped else ExitCode.OK


def count_results(
    plan: Plan, records: Sequence[Record], location: str, interrupted_by: int | None
) -> RunResult:
    """Count what is stored, and say it."""
    planned = {trial.trial_id for launch in plan.launches for trial in launch.trials}
    counts = Counter(record.status for record in records if record.record_id in planned)
    num_ok, num_skipped = counts[Status.OK], counts[Status.SKIPPED]
    num_failed = counts[Status.FAILED] + counts[Status.TIMEOUT]
    message = f"{counts.total()} of {len(planned)} trials are in {location}"
    if interrupted_by is not None:
        message = f"interrupted: {message}"
    if num_failed or num_skipped:
        kinds = ((num_ok, "good"), (num_failed, "failed"), (num_skipped, "skipped"))
        message += ": " + ", ".join(f"{number} {kind}" for number, kind in kinds if number)
    return RunResult(
        interrupted_by=interrupted_by,
        num_trials=len(planned),
        num_ok=num_ok,
        num_failed=num_failed,
        num_skipped=num_skipped,
        message=message,
    )
