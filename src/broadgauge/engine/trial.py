"""What becomes of one trial? Its outcome, merged and judged, is one record."""

from dataclasses import dataclass

from pydantic import ValidationError

from broadgauge.engine.ports import Merged, Merger, Series
from broadgauge.messages.codec import DecodeError
from broadgauge.messages.rank import ARTIFACT, Artifact
from broadgauge.specs.case import Case
from broadgauge.specs.errors import LaunchError
from broadgauge.specs.launching import TrialOutcome
from broadgauge.specs.plan import Plan, PlannedLaunch, PlannedTrial
from broadgauge.specs.records.record import (
    ErrorKind,
    Measurement,
    Phase,
    Record,
    Status,
    TrialError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialPlace:
    """Where a trial stands in the run."""

    planned: PlannedTrial
    case: Case
    launch_id: str
    block: int
    position: int


def positions(plan: Plan) -> dict[str, int]:
    """Trial id → its place in the order of all trials of its block."""
    seen: dict[int, int] = {}
    found: dict[str, int] = {}
    for launch in plan.launches:
        for trial in launch.trials:
            found[trial.trial_id] = seen.get(launch.block, 0)
            seen[launch.block] = found[trial.trial_id] + 1
    return found


def next_launch_id(launch: PlannedLaunch, records: list[Record]) -> str:
    """The planned id for the first life that leaves a record, `<planned id>r<n>` for the others.

    A life that was killed before its first record leaves its number to the next one.
    """
    used = {record.launch_id for record in records}
    lives = (launch.launch_id, *(f"{launch.launch_id}r{n}" for n in range(1, len(records) + 1)))
    return next(life for life in lives if life not in used)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """What is merged of ranks that said what no rank would say: nothing, and an error."""

    measurement: Measurement
    series: Series
    error: TrialError | None


def merge_safely(
    merger: Merger, case: Case, outcome: TrialOutcome, peak_flops: float | None
) -> Merged:
    """What the ranks measured; a trial whose messages make no sense fails, and the run goes on."""
    try:
        artifacts_of(outcome)
        return merger(case, outcome, peak_flops)
    except (DecodeError, ValidationError) as error:
        message = f"what the ranks sent can't be read: {_first_problem(error)}"
        return Unreadable(
            measurement=Measurement(),
            series={},
            error=TrialError(kind=ErrorKind.CRASHED, message=message, phase=Phase.MEASURE),
        )


def _first_problem(error: DecodeError | ValidationError) -> str:
    return str(error) if isinstance(error, DecodeError) else error.errors()[0]["msg"]


def artifacts_of(outcome: TrialOutcome) -> tuple[Artifact, ...]:
    """The files that ranks say they left, in the order of ranks.

    Raises DecodeError for what no rank would say.
    """
    return tuple(
        ARTIFACT(message)
        for said in outcome.messages
        for message in said
        if message.get("type") == "artifact"
    )


def measured_record(
    place: TrialPlace, outcome: TrialOutcome, merged: Merged, environment: str
) -> Record:
    """The record of a trial that ran, well or not."""
    error = _with_storage(outcome.error or merged.error, place.case)
    status = outcome.status
    if status is Status.OK and error is not None:
        status = failed_status(error)
    return _record(
        place,
        measurement=merged.measurement,
        started_unix_s=outcome.started_unix_s,
        ended_unix_s=outcome.ended_unix_s,
        status=status,
        error=error,
    ).model_copy(
        update={
            "gpus": outcome.gpus,
            "link": outcome.link,
            "path": outcome.path,
            "nccl": outcome.nccl,
            "clocks": outcome.clocks,
            "environment": environment,
            "launch_id": outcome.launch_id or place.launch_id,
        }
    )


def _with_storage(error: TrialError | None, case: Case) -> TrialError | None:
    """A mount that hangs lets no rank tell of it where the kernel doesn't: a hang names it."""
    storage = case.storage
    if error is None or storage is None or error.kind is not ErrorKind.HUNG:
        return error
    name = f"storage `{storage.name}` ({storage.path})"
    if name in error.message:
        return error
    return error.model_copy(update={"message": f"{error.message}; {name} was worked on"})


def lost_record(
    place: TrialPlace, error: LaunchError, started_unix_s: float, ended_unix_s: float
) -> Record:
    """The record of a trial whose launch did not come up."""
    trial_error = error.error or _not_started(error)
    return _record(
        place,
        measurement=Measurement(),
        started_unix_s=started_unix_s,
        ended_unix_s=ended_unix_s,
        status=failed_status(trial_error),
        error=trial_error,
    ).model_copy(update={"findings": error.findings})


def _not_started(error: LaunchError) -> TrialError:
    """The message's first line with the hint; lines below it are of a rank's log."""
    first, *rest = error.message.splitlines() or ["the launch did not come up"]
    hint = "" if error.hint is None else f" (hint: {error.hint})"
    return TrialError(
        kind=ErrorKind.NOT_STARTED,
        message=first + hint,
        phase=Phase.RENDEZVOUS,
        last_lines=tuple(line.removeprefix("  | ") for line in rest),
    )


def skipped_record(place: TrialPlace, reason: TrialError, unix_s: float) -> Record:
    """The record of a trial that was given up."""
    return _record(
        place,
        measurement=Measurement(),
        started_unix_s=unix_s,
        ended_unix_s=unix_s,
        status=Status.SKIPPED,
        error=reason,
    )


def failed_status(error: TrialError) -> Status:
    """A time limit that passed is a time-out, anything else a failure."""
    return Status.TIMEOUT if error.kind is ErrorKind.HUNG else Status.FAILED


def _record(
    place: TrialPlace,
    *,
    measurement: Measurement,
    started_unix_s: float,
    ended_unix_s: float,
    status: Status,
    error: TrialError | None,
) -> Record:
    return Record(
        **{name: getattr(measurement, name) for name in Measurement.model_fields},
        record_id=place.planned.trial_id,
        case_key=place.planned.case_key,
        workload=place.case.workload.name,
        network=place.case.network_name,
        shape=place.case.shape,
        max_batch_len=place.case.workload.batch_tokens,
        launch_id=place.launch_id,
        block=place.block,
        trial=place.planned.trial,
        position=place.position,
        started_unix_s=started_unix_s,
        ended_unix_s=ended_unix_s,
        status=status,
        error=error,
    )
