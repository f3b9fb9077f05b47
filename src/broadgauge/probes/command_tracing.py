"""How is a user's command traced? In a launch of its own, which ends when its steps are traced.

A command prints what it likes, also means over all of its steps: a profiler in the launch that is
timed would be in its figures. So the command is started once more after it, with the hook that
runs the profiler (trace_hook.py) in its Python; each of its processes that steps an optimizer
tells of itself in a file. When all have their trace on all nodes, torchrun is ended.
"""

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from broadgauge.messages.rank import TraceProblem
from broadgauge.messages.tasks import CommandTask, TracedLaunch
from broadgauge.messages.vocabulary import Phase
from broadgauge.probes.command_ranks import copy_hook, install_hook, processes_below
from broadgauge.probes.command_start import (
    node_ranks,
    python_and_environment,
    torchrun_command,
)
from broadgauge.probes.command_streams import CommandStreams
from broadgauge.probes.trace_hook import (
    AFTER_VARIABLE,
    FOLDER_VARIABLE,
    MODULE_NAME,
    STEPS_VARIABLE,
)
from broadgauge.probes.trace_place import trace_folder
from broadgauge.probes.trial import Trial

if TYPE_CHECKING:
    from broadgauge.probes.command import RunningCommand

LOOK_S = 0.2
POLITE_S = 5.0
"""From SIGTERM, which torchrun passes on, to SIGKILL."""
FEWER_RANKS_S = 5.0
"""Fewer processes than ranks step an optimizer: so long others may still begin to."""
BEGIN_MARK, END_MARK = "command:traced", "command:all_traced"


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedProcess:
    """What a process that steps an optimizer told of itself."""

    rank: int
    problem: str | None
    trace: str | None
    """The name of its file; None: it has none, or not yet."""

    @property
    def is_done(self) -> bool:
        return self.problem is not None or self.trace is not None


def run_traced(
    trial: Trial, task: CommandTask, running: "RunningCommand", variables: Mapping[str, str]
) -> None:
    """The command once more, under the profiler; what it prints is read by nobody."""
    traced = task.traced_launch
    assert traced is not None, "else there is nothing to trace"
    trial.begin_phase(Phase.WARM_UP, f"the traced launch, {traced.steps} steps")
    trial.mark(BEGIN_MARK)  # the first launch's ports are free on all nodes
    python, environment = python_and_environment(task, variables)
    try:
        folder = trace_folder(trial.trial_id)
        launch = TracedCommand(trial, traced, folder, num_ranks=trial.layout.ranks_per_node)
        environment = launch.environment(environment)
    except OSError as error:
        message = f"node {trial.identity.node}: the traced launch can't be prepared: {error}"
        trial.say(TraceProblem(trial_id=trial.trial_id, message=message))
        trial.mark(END_MARK)
        return
    torchrun_folder = folder / "torchrun"
    exit_code = running.run(
        torchrun_command(trial.layout, task, trial.identity, torchrun_folder, python),
        task.working_directory,
        environment,
        CommandStreams(task.metrics, node_ranks(trial), torchrun_folder, lambda _: None),
        launch.follow(running.end),
    )
    launch.wait_for_others()
    launch.tell(exit_code)


class TracedCommand:
    """The traced launch of one node."""

    def __init__(self, trial: Trial, traced: TracedLaunch, folder: Path, *, num_ranks: int) -> None:
        self._trial, self._traced, self._folder = trial, traced, folder
        self._num_ranks = num_ranks
        self._hook = folder / "hook"
        self._limit_s = trial.command.process_group_timeouts_s[Phase.WARM_UP]
        self._began_s = self._looked_s = time.monotonic()
        self._done_s: float | None = None
        self._ended_s: float | None = None
        self._has_marked = self._is_late = False

    def environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """With which the command's processes load the hook. Raises OSError."""
        found = install_hook(self._hook, environment)
        copy_hook("trace_hook.py", self._hook / f"{MODULE_NAME}.py")
        return found | {
            FOLDER_VARIABLE: str(self._folder),
            STEPS_VARIABLE: str(self._traced.steps),
            AFTER_VARIABLE: str(self._traced.after_steps),
            "NCCL_DEBUG": "WARN",  # what it logs of itself stands in the first launch's log
        }

    def follow(self, end: Callable[[], None]) -> Callable[[int], None]:
        """Called again and again while it runs; calls `end` once, when nothing is left to do."""

        def on_tick(torchrun_pid: int) -> None:
            now_s = time.monotonic()
            if now_s - self._looked_s < LOOK_S:
                return
            self._looked_s = now_s
            if self._ended_s is not None:
                if now_s - self._ended_s > POLITE_S:
                    _kill_below(torchrun_pid)
                return
            self._is_late = now_s - self._began_s > self._limit_s
            if self._is_late or self._all_done(now_s):
                self.wait_for_others()
                self._ended_s = time.monotonic()
                end()

        return on_tick

    def _all_done(self, now_s: float) -> bool:
        processes = self._processes()
        if not processes or not all(each.is_done for each in processes):
            self._done_s = None
            return False
        if len(processes) >= self._num_ranks:
            return True
        self._done_s = now_s if self._done_s is None else self._done_s
        return now_s - self._done_s > FEWER_RANKS_S

    def wait_for_others(self) -> None:
        """Ranks that end while others still trace would break these; each node is here once."""
        if not self._has_marked:
            self._has_marked = True
            self._trial.mark(END_MARK)

    def tell(self, exit_code: int) -> None:
        """Leaves the traces with the trial, and says why there are none where there are none."""
        processes = self._processes()
        problems = [
            f"rank {each.rank}: {each.problem or self._why_unfinished(exit_code)}"
            for each in processes
            if each.trace is None
        ]
        if not processes:
            problems.append(self._why_no_steps(exit_code))
        for problem in dict.fromkeys(problems):
            self._trial.say(TraceProblem(trial_id=self._trial.trial_id, message=problem))
        for name in dict.fromkeys(each.trace for each in processes):
            if name is not None:
                self._trial.leave(self._folder / name, "trace")
        for path in self._folder.glob("*.state"):
            path.unlink()
        shutil.rmtree(self._hook, ignore_errors=True)
        if not problems:
            shutil.rmtree(self._folder / "torchrun", ignore_errors=True)

    def _why_no_steps(self, exit_code: int) -> str:
        if self._is_late:
            return f"no step of an optimizer came within {self._limit_s:g} s (`warm_up_s`)"
        if exit_code:
            return f"the traced launch ended with exit code {exit_code} before its first step"
        return "no process stepped an optimizer of torch.optim: the step is unknown"

    def _why_unfinished(self, exit_code: int) -> str:
        if self._is_late:
            return f"its steps were not traced within {self._limit_s:g} s (`warm_up_s`)"
        return f"the traced launch ended with exit code {exit_code} before its steps were traced"

    def _processes(self) -> list[TracedProcess]:
        """In the order of their ranks."""
        found = [_read(path) for path in self._folder.glob("*.state")]
        return sorted(found, key=lambda each: each.rank)


def _kill_below(torchrun_pid: int) -> None:
    """Scripts may handle SIGTERM and write a checkpoint: this launch's work is done."""
    for pid in list(processes_below(torchrun_pid)):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _read(path: Path) -> TracedProcess:
    """Our own hook's file, written whole."""
    told = json.loads(path.read_text())
    return TracedProcess(rank=told["rank"], problem=told["problem"], trace=told["trace"])
