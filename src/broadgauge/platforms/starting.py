"""How does a launch come up, up to the ranks' first words?"""

import shutil
from pathlib import Path

from broadgauge.messages.agent import Ended, RankSaid, Ready, Refused
from broadgauge.messages.launch_order import LaunchOrder
from broadgauge.platforms.connection import SupervisorConnection, SupervisorLost
from broadgauge.platforms.diagnosis import Symptoms
from broadgauge.platforms.host_facts import make_environment
from broadgauge.platforms.launch_folders import private
from broadgauge.platforms.launch_logs import LaunchLogs
from broadgauge.platforms.launch_plan import LaunchSettings, first_environment, plan_launch
from broadgauge.platforms.log_tail import OWN_LINE
from broadgauge.platforms.rank_environment import recorded_variables
from broadgauge.platforms.reading_logs import read_logs
from broadgauge.platforms.supervised import (
    SILENCE_LIMIT_S,
    CheckTrial,
    SupervisedLaunch,
    TakeNotes,
)
from broadgauge.specs.case import Case
from broadgauge.specs.errors import LaunchError, RunFolderError
from broadgauge.specs.launching import LaunchRequest, RankMessage, TrialProgress
from broadgauge.specs.records.record import ErrorKind, Phase

MIN_FREE_BYTES = 2**20
_SHOWN_LINES = 10


def start_launch(
    request: LaunchRequest,
    progress: TrialProgress,
    settings: LaunchSettings,
    *,
    platform_name: str,
    take_notes: TakeNotes,
    check: CheckTrial | None = None,
) -> SupervisedLaunch:
    """Start the ranks and hear each one's hello. `take_notes`: told what the user should know.

    Raises LaunchError, or RunFolderError where logs can't be written, with nothing left.
    """
    order, notes = plan_launch(request, settings)
    logs = settings.folders.logs
    open_logs(order, logs)
    progress(Phase.RENDEZVOUS, f"starting {len(order.ranks)} processes")
    try:
        supervisor_log = logs / f"{request.launch_id}.supervisor.log"
        working_folder = settings.folders.working_of(request.arm)
        connection = SupervisorConnection(
            settings.programs.supervisor, order, supervisor_log, working_folder
        )
    except (OSError, ValueError) as error:
        raise LaunchError(f"{request.launch_id}: the supervisor did not start: {error}") from error
    launch_logs = LaunchLogs(folder=logs, launch_id=request.launch_id, read=read_logs)
    try:
        more_notes, hello = _hear_hellos(connection, order, launch_logs, request.cases[0])
        environment = make_environment(
            platform_name,
            hello,
            gpus=settings.gpus,
            variables=recorded_variables(
                first_environment(request, settings),
                request.cases[0],
                request.launch_id,
                str(logs.absolute()),
            ),
            working_folder=settings.folders.working_of(request.arm),
        )
    except BaseException:
        connection.close(0)
        raise
    take_notes((*notes, *more_notes))
    return SupervisedLaunch(
        connection,
        order,
        environment,
        logs=launch_logs,
        gpus=settings.gpus,
        check=check,
        take_notes=take_notes,
    )


def open_logs(order: LaunchOrder, folder: Path) -> None:
    """Can the ranks' logs be written? Begin each with who writes it. Raises RunFolderError.

    The next launch would fare no better, and its trials can still be run when there is space.
    """
    try:
        folder.mkdir(0o700, parents=True, exist_ok=True)
        for rank in order.ranks:
            header = f"{OWN_LINE} launch {order.launch_id}, rank {rank.rank}, node {rank.node}\n"
            with open(folder / rank.log, "a", opener=private) as log:
                log.write(header)
        free_bytes = shutil.disk_usage(folder).free
    except OSError as error:
        raise RunFolderError(
            f"the log folder {folder} can't be written: {error.strerror or error}",
            hint="free some space, then `broadgauge run --resume` goes on",
        ) from error
    if free_bytes < MIN_FREE_BYTES:
        raise RunFolderError(
            f"the disk of the log folder {folder} is full: {free_bytes} bytes are left",
            hint="free some space, then `broadgauge run --resume` goes on",
        )


def _hear_hellos(
    connection: SupervisorConnection, order: LaunchOrder, logs: LaunchLogs, case: Case
) -> tuple[tuple[str, ...], RankMessage]:
    """Wait for every rank's first words; the nodes' notes, and what rank 0 said."""
    symptoms = Symptoms()
    notes: tuple[str, ...] = ()
    hellos: dict[int, RankMessage] = {}
    try:
        while len(hellos) < len(order.ranks) or symptoms.is_failed:
            event = connection.receive(SILENCE_LIMIT_S)
            if event is None:
                raise SupervisorLost(f"the supervisor did not answer for {SILENCE_LIMIT_S:g} s")
            symptoms.see(event)
            match event:
                case Ready():
                    notes = event.notes
                case Refused():
                    raise LaunchError(f"{order.launch_id}: {event.message}", hint=event.hint)
                case RankSaid() if event.message.get("type") == "hello":
                    hellos[event.rank] = event.message
                case Ended():
                    break
                case _:
                    pass
    except SupervisorLost as loss:
        raise _failure(order, logs, symptoms, case) or LaunchError(
            f"{order.launch_id}: {loss}"
        ) from None
    failure = _failure(order, logs, symptoms, case)
    if failure is not None:
        raise failure
    return notes, hellos[0]


def _failure(
    order: LaunchOrder, logs: LaunchLogs, symptoms: Symptoms, case: Case
) -> LaunchError | None:
    """Why did the ranks not come up, with the end of the guilty one's log?"""
    error = symptoms.error(tuple(logs.folder / rank.log for rank in order.ranks))
    if error is None:
        return None
    kind = "did not come up in time" if error.kind is ErrorKind.HUNG else "did not come up"
    lines = [
        f"{order.launch_id} {kind}: {error.message}",
        *(f"  | {line}" for line in error.last_lines[-_SHOWN_LINES:]),
    ]
    log = logs.folder / order.ranks[error.rank or 0].log
    return LaunchError(
        "\n".join(lines),
        hint=f"all that it wrote is in {log}",
        error=error,
        findings=logs.of_trial(case, error).findings,
    )
