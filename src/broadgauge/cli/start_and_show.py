"""How does a command start a run, and show it while it goes on and when it has ended?"""

import shlex
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from broadgauge.cli.console import PlainConsole, results_console
from broadgauge.cli.output import details_command, program, say, write
from broadgauge.cli.progress import LiveLine, PlainLines
from broadgauge.engine.events import Noted, PhaseBegan
from broadgauge.engine.interrupts import Interrupt, Interrupts, signals_to
from broadgauge.report.lines.opening import schedule_lines
from broadgauge.results.run_path import run_path
from broadgauge.running.dry_run import DryRun, dry_run
from broadgauge.running.events import RunEvent, RunObserver
from broadgauge.running.experiments import LoadedExperiment, load
from broadgauge.running.preparing import RunOptions, prepare
from broadgauge.specs.errors import ExitCode, InputError, TooFewGpusError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.platforms import ON_OTHER_MACHINES
from broadgauge.specs.workloads.workload import Engine

if TYPE_CHECKING:  # a dry run starts without what merges, judges and stores
    from broadgauge.running.starting import FinishedRun


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What the user asked for."""

    name_or_path: str
    overrides: Sequence[str] = ()
    engine: Engine | None = None
    """Of the collectives, beside torch; None: as the experiment says."""
    change: Callable[[Experiment], Experiment] | None = None
    """What a command makes of the experiment before it is planned; None: it is run as it is."""
    options: RunOptions = field(default_factory=RunOptions)

    def load(self) -> LoadedExperiment:
        """Raises InputError."""
        loaded = load(self.name_or_path, self.overrides, self.engine)
        if self.change is None:
            return loaded
        return replace(loaded, experiment=self.change(loaded.experiment))


class Begin(Protocol):
    """Starts a run, or goes on with one."""

    def __call__(self, *, observer: RunObserver, interrupts: Interrupts) -> "FinishedRun": ...


def run_new(request: RunRequest) -> "FinishedRun":
    """Prepare and run, telling all of it on stderr."""
    from broadgauge.running.starting import start

    def begin(*, observer: RunObserver, interrupts: Interrupts) -> "FinishedRun":
        prepared = prepare(request.load(), request.options, observer=observer)
        return start(prepared, observer=observer, interrupts=interrupts)

    return _followed(begin)


def begin_and_leave(request: RunRequest) -> int:
    """Run until its first trial has begun, and let go of it. Raises InputError where a run would
    end with the tool."""
    from broadgauge.running.starting import start

    def begin(*, observer: RunObserver, interrupts: Interrupts) -> "FinishedRun":
        loaded = request.load()
        if not ON_OTHER_MACHINES.issuperset(loaded.experiment.platforms):
            raise InputError(
                "--detach lets go of a run that goes on elsewhere, and this one runs here",
                hint="`--on kubernetes`, or `--on hosts`",
            )
        prepared = prepare(loaded, request.options, observer=observer)

        def leave_when_it_runs(event: RunEvent) -> None:
            observer(event)
            if isinstance(event, PhaseBegan) and event.trial_id is not None:
                interrupts.request(signal.SIGHUP)

        return start(prepared, observer=leave_when_it_runs, interrupts=interrupts)

    run = _followed(begin)
    if run.result.interrupted_by != signal.SIGHUP:
        return show_finished(run)  # it was over before
    say("the run goes on without this terminal")
    _say_how_to_go_on(run.folder)
    return ExitCode.OK


def run_on(run_text: str, runs_folder: Path) -> "FinishedRun":
    """Go on with a stored run."""
    from broadgauge.running.starting import resume

    path = run_path(run_text, runs_folder)

    def begin(*, observer: RunObserver, interrupts: Interrupts) -> "FinishedRun":
        return resume(path, observer=observer, interrupts=interrupts)

    return _followed(begin)


def print_dry_run(request: RunRequest, *, may_assume_gpus: bool = False) -> int:
    """The schedule and what each rank would be given. Runs nothing.

    `may_assume_gpus`: the command has the flag for it.
    """
    lines = PlainLines(PlainConsole(stderr=True))
    try:
        prepared = prepare(request.load(), request.options, observer=lines)
    except TooFewGpusError as error:
        if not may_assume_gpus or request.options.assumed_gpus is not None:
            raise
        flag = f"--assume-gpus {error.num_wanted}"
        raise InputError(
            error.message, hint=f"{flag} plans as if they were here; else {error.hint}"
        ) from error
    for name in prepared.secrets.unset(prepared.plan.cases):
        lines(Noted(text=f"`{name}` is not set in your environment, and a run needs it"))
    _print(dry_run(prepared))
    return ExitCode.PLATFORM_REFUSED if prepared.is_fallback else ExitCode.OK


def _print(would_run: DryRun) -> None:
    for line in schedule_lines(would_run.plan):
        write(f"{line}\n")
    for launch in would_run.launches:
        write(f"\nranks of launch {launch.launch_id} and of those with the same cases:\n")
        for command in launch.ranks:
            write(f"{command}\n")
        for command in launch.prepare:
            write(f"before any launch, once on this host:\n{command}\n")
    if would_run.filled_in:
        told = ", ".join(f"{word} {what}" for word, what in would_run.filled_in.items())
        write(f"\nfilled in where it runs: {told}\n")


def _followed(begin: Begin) -> "FinishedRun":
    console = PlainConsole(stderr=True)
    display = LiveLine(console) if console.is_terminal else PlainLines(console)
    interrupts = Interrupts()
    try:
        with signals_to(interrupts), display:
            return begin(observer=display, interrupts=interrupts)
    except Interrupt:  # outside of a trial: one in a trial is a result
        if display.folder is not None:
            _say_how_to_go_on(display.folder)
        raise


def show_finished(run: "FinishedRun") -> int:
    """The tables, the report and where they are.

    Returns the exit code: the run's, or the gate's where that has nothing to say.
    """
    # Here, so that a plan, which shows nothing of this, starts without numpy.
    from broadgauge.analysis.store import read_analysed
    from broadgauge.cli.compare import show_arms
    from broadgauge.report.page.html import write_report
    from broadgauge.report.terminal.printing import print_run_briefly
    from broadgauge.results.comparing.arms import of_arm

    gate_code = 0
    if run.result.interrupted_by is None:
        analysed = read_analysed(run.folder)
        candidates = replace(analysed, run=of_arm(analysed.run, "candidate"))
        with results_console() as console:
            print_run_briefly(candidates, console, details_command(run.location))
            gate_code = show_arms(analysed.run, console, analysed.analysis.gate)
        report = write_report(analysed)
        say(f"report     {report}")
    say(run.result.message)
    if run.result.interrupted_by is not None:
        _say_how_to_go_on(run.folder)
    return run.exit_code or gate_code


def _say_how_to_go_on(folder: Path) -> None:
    say(f"go on with: {program()} run --resume {shlex.quote(str(folder))}")
