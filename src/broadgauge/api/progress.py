"""What is told of a run while Python waits for it?"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from broadgauge.engine.events import PlanGrown, RecordWritten, RunStarted
from broadgauge.engine.run_result import RunResult
from broadgauge.report.lines.progress import ProgressLines
from broadgauge.running.events import FolderOpened, RunEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One thing that happened; as text it is the line that `broadgauge run` prints."""

    text: str
    num_finished: int
    """Trials that have their record, those of an earlier session among them."""
    num_trials: int
    """In all; 0 until the plan is made."""
    remaining_s: float | None
    """How long the rest should take; None: not known yet."""

    def __str__(self) -> str:
        return self.text


OnProgress = Callable[[Progress], object]
"""Called in the thread that runs; what it returns is not looked at."""


class Watching:
    """Follows a run, and tells of it where somebody wants to know."""

    def __init__(self, tell: OnProgress | None = None) -> None:
        self._tell = tell
        self._lines = ProgressLines()
        self._finished, self._trials = 0, 0
        self._remaining_s: float | None = None
        self.folder: Path | None = None
        """The run's, once it is there."""

    def __call__(self, event: RunEvent) -> None:
        if isinstance(event, FolderOpened):
            self.folder = event.folder
        if isinstance(event, RunStarted | RecordWritten | PlanGrown):
            self._finished, self._trials = event.num_finished, event.num_trials
            self._remaining_s = event.remaining_s
        if self._tell is not None:
            for line in self._lines.of(event):
                self.say(line)

    def say(self, text: str) -> None:
        """Tell this too."""
        if self._tell is not None:
            told = Progress(
                text=text,
                num_finished=self._finished,
                num_trials=self._trials,
                remaining_s=self._remaining_s,
            )
            self._tell(told)

    def check(self, result: RunResult) -> None:
        """Raises Interrupt where a signal ended the run: its caller has asked for that."""
        from broadgauge.engine.interrupts import Interrupt

        if result.interrupted_by is not None:
            raise Interrupt(result.interrupted_by)
