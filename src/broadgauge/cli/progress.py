"""What is seen while a run goes on: a live line in a terminal, plain lines elsewhere."""

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from broadgauge.engine.events import (
    LaunchStarting,
    PhaseBegan,
    PlanGrown,
    RecordWritten,
    RunStarted,
)
from broadgauge.report.lines.progress import ProgressLines
from broadgauge.running.events import FolderOpened, RunEvent
from broadgauge.specs.units import show_time

if TYPE_CHECKING:
    from rich.console import Console


class PlainLines:
    """One line for what happened; nothing is drawn over."""

    def __init__(self, console: "Console") -> None:
        self._console = console
        self._lines = ProgressLines()
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
        for line in self._lines.rest():
            self._line(line)

    def __call__(self, event: RunEvent) -> None:
        if isinstance(event, FolderOpened):
            self.folder = event.folder
        for line in self._lines.of(event):
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
        super().__exit__(kind, error, trace)

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


def _starting(event: LaunchStarting) -> str:
    of_arm = " of the baseline" if event.cases[0].arm == "baseline" else ""
    return f"starting {event.cases[0].shape} ranks{of_arm}"


def _doing(event: PhaseBegan) -> str:
    what = event.case.label if event.case is not None else "launch"
    return f"{what}: {event.phase.replace('_', '-')} {event.detail}".rstrip()
