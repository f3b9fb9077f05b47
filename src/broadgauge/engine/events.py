"""What does a run say while it goes on? For the progress display and plain lines alike."""

from dataclasses import dataclass

from broadgauge.specs.case import Case
from broadgauge.specs.launching import ShownPhase
from broadgauge.specs.records.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    location: str
    num_trials: int
    num_finished: int
    """Stored by an earlier run of the same folder, and not run again."""
    remaining_s: float
    notes: tuple[str, ...]
    """The platform's; the plan's are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchStarting:
    launch_id: str
    cases: tuple[Case, ...]
    num_trials: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseBegan:
    """Of a trial; of the launch itself while `trial_id` is None."""

    launch_id: str
    trial_id: str | None
    case: Case | None
    phase: ShownPhase
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordWritten:
    case: Case
    record: Record
    """As stored."""
    num_finished: int
    num_trials: int
    remaining_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchEnded:
    launch_id: str
    reason: str | None
    """Why it ended before its trials were done; None: they are done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanGrown:
    """All that was planned is done, and there is more to run."""

    reason: str
    num_launches: int
    """Added."""
    num_trials: int
    """In all."""
    num_finished: int
    remaining_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """Something to know that no single record says."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded:
    interrupted_by: int | None
    """The signal's number; None: nothing is left to run."""
    num_finished: int
    num_trials: int


Event = (
    RunStarted
    | LaunchStarting
    | PhaseBegan
    | RecordWritten
    | LaunchEnded
    | PlanGrown
    | Noted
    | RunEnded
)
