"""What is seen while a run goes on: a live line in a terminal, plain lines elsewhere."""

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from broadgauge.cli.opening import machine_lines, plan_lines, refusal_lines
from broadgauge.engine.events import (
    LaunchEnded,
    LaunchStarting,
    Noted,
    PhaseBegan,
    PlanGrown,
    RecordWritten,
    RunStarted,
)
from broadgauge.report.quantities import show
from broadgauge.running.events import (
    FolderOpened,
    MachineRead,
    NodesRefused,
    PlanMade,
    PrepareStepBegins,
    RunEvent,
)
from broadgauge.specs.record import Record, Status
from broadgauge.specs.units import show_time

if TYPE_CHECKING:
    from rich.console import Console

HEADLINES = ("step_time_s", "busbw_gbyte_per_s")
"""The metric that a line about a finished trial shows: the first that it has."""


class PlainLines:
    """One line for what happened; nothing is drawn over."""

    def __init__(self, console: "Console") -> None:
        self._console = console
        self.folder: Path | None = None
        """The run's, once it is there."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None

    def __call__(self, event: RunEvent) -> None:
        if isinstance(event, FolderOpened):
            self.folder = event.folder
        for line in event_lines(event):
            self._line(line)

    def _line(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


class LiveLine(PlainLines):
    """Finished trials scroll by; under them one line says what runs now and how long it will."""

    def __init__(self, console: "Console") -> None:
        super().__init__(console)
        from rich.progress import BarColumn, Progress, TextColumn

        self._progress = Progress(
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[left]}"),
            TextColumn("{task.description}", markup=False),
            console=console,
            transient=True,
        )
        self._task = self._progress.add_task("starting", total=1, left="")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._progress.live.is_started:
            self._progress.stop()

    def __call__(self, event: RunEvent) -> None:
        match event:
            case RunStarted():
                self._progress.start()  # not before: what is prepared writes for itself
                self._progress.update(self._task, total=event.num_trials)
                self._advance(event.num_finished, event.remaining_s)
            case LaunchStarting():
                self._describe(_starting(event))
            case PhaseBegan():
                self._describe(_doing(event))
            case PlanGrown():
                self._progress.update(self._task, total=event.num_trials)
                self._advance(event.num_finished, event.remaining_s)
            case RecordWritten():
                self._advance(event.num_finished, event.remaining_s)
            case _:
                pass
        super().__call__(event)

    def _advance(self, num_finished: int, remaining_s: float) -> None:
        left = f"about {show_time(remaining_s, 2)} left"
        self._progress.update(self._task, completed=num_finished, left=left)

    def _describe(self, text: str) -> None:
        self._progress.update(self._task, description=text)


def event_lines(event: RunEvent) -> Iterable[str]:
    """What of an event stays on the screen."""
    match event:
        case MachineRead():
            return machine_lines(event.machine)
        case NodesRefused():
            return refusal_lines(event.machine)
        case PlanMade():
            return plan_lines(event.experiment, event.plan)
        case PrepareStepBegins():
            return (f"prepare    {event.workload}: {' '.join(event.command)}",)
    return _lines_while_running(event)


def _lines_while_running(event: RunEvent) -> Iterable[str]:
    match event:
        case RunStarted():
            notes = [f"note       {note}" for note in event.notes]
            done = f", {event.num_finished} of {event.num_trials} trials are there already"
            resumed = done if event.num_finished else ""
            return [*notes, f"run        {event.location}{resumed}"]
        case RecordWritten():
            place = f"[{event.num_finished}/{event.num_trials}]"
            return [f"{place} {event.case.label}: {outcome(event.record)}"]
        case LaunchEnded() if event.reason is not None:
            return [f"launch {event.launch_id} ended early: {event.reason}"]
        case PlanGrown():
            return [f"more       {_counted(event.num_launches)}: {event.reason}"]
        case Noted():
            return [f"note       {event.text}"]
        case _:
            return []


def _counted(num_launches: int) -> str:
    return f"{num_launches} launch{'' if num_launches == 1 else 'es'}"


def outcome(record: Record) -> str:
    """`step 612 ms`, or what went wrong."""
    if record.status is not Status.OK:
        return f"{record.status.upper()} {record.error.message if record.error else ''}".rstrip()
    wanted = [*HEADLINES, *(metric for metric in record.metrics if metric not in HEADLINES)]
    for name in wanted:
        value = record.metrics.get(name)
        if value is not None:
            return (
                f"{name.rsplit('_', 1)[0].split('_gbyte')[0].replace('_', ' ')} {show(name, value)}"
            )
    return "ok"


def _starting(event: LaunchStarting) -> str:
    of_arm = " of the baseline" if event.cases[0].arm == "baseline" else ""
    return f"starting {event.cases[0].shape} ranks{of_arm}"


def _doing(event: PhaseBegan) -> str:
    what = event.case.label if event.case is not None else "launch"
    phase = event.phase.value.replace("_", "-")
    return f"{what}: {phase} {event.detail}".rstrip()
