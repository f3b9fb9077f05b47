"""How is a run put together? The only place that knows engine, platforms, probes and results."""

import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from broadgauge.advise.judge import findings
from broadgauge.catalog.gpus import find_gpu
from broadgauge.cli.baseline import arms, read_against
from broadgauge.cli.console import PlainConsole, results_console
from broadgauge.cli.experiments import load
from broadgauge.cli.opening import machine_lines, plan_lines, schedule_lines
from broadgauge.cli.output import program, say, write
from broadgauge.cli.own_command import check_commands, prepare_lines, torchrun_lines
from broadgauge.cli.progress import LiveLine, PlainLines
from broadgauge.cli.runs import read_summary, run_path
from broadgauge.cli.training_data import check_training_data
from broadgauge.engine.interrupts import Interrupt, Interrupts, signals_to
from broadgauge.engine.plan import make_plan, on_local_platform
from broadgauge.engine.ports import Series, Services
from broadgauge.engine.run import RunResult, run
from broadgauge.merging.merge import merge
from broadgauge.platforms.emulated.syscalls import PR_SET_PDEATHSIG, prctl
from broadgauge.platforms.emulated_cluster import EmulatedPlatform
from broadgauge.platforms.launch_folders import LaunchFolders
from broadgauge.platforms.local import LocalPlatform
from broadgauge.platforms.machine import read_machine
from broadgauge.results.folder import RunFolder
from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError, PlatformError, RunFolderError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.launching import LaunchRequest, Platform
from broadgauge.specs.machine import MachineFacts
from broadgauge.specs.plan import Plan
from broadgauge.specs.reading import read_experiment
from broadgauge.specs.record import Environment, Finding, Record
from broadgauge.specs.workload import CommandWorkload, Engine, TrainWorkload
from broadgauge.specs.writing import dump_experiment

REFUSED_EXIT_CODE = PlatformError.exit_code


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the user asked for."""

    name_or_path: str
    overrides: Sequence[str] = ()
    engine: Engine | None = None
    """Of the collectives, beside torch; None: as the experiment says."""
    against: str | None = None
    """A run folder, or `last`."""
    fail_above_ratio: float | None = None
    change: Callable[[Experiment], Experiment] | None = None
    """What a command makes of the experiment before it is planned; None: it is run as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """An experiment and what it means on this machine."""

    experiment: Experiment
    plan: Plan
    is_fallback: bool
    """Nodes were refused: this is what can run on the local platform."""


def start(
    wanted: Wanted, runs_folder: Path, tell_folder: Callable[[Path], object] = lambda _: None
) -> int:
    """A new run. Returns the exit code; where it is stored is told as soon as it is there."""
    prepared = _prepare(wanted, runs_folder)
    _run_prepare_steps(prepared.plan)
    folder = RunFolder.create(
        runs_folder,
        plan=prepared.plan,
        experiment_yaml=dump_experiment(prepared.experiment),
        started_unix_s=time.time(),
    )
    tell_folder(folder.path)
    return _run_in(folder, prepared.experiment, REFUSED_EXIT_CODE if prepared.is_fallback else 0)


def resume(run_text: str, runs_folder: Path) -> int:
    """Go on with a stored run. Returns the exit code."""
    folder = RunFolder.open_for_resume(run_path(run_text, runs_folder))
    with folder:
        for note in folder.notes:
            say(f"note       {note}")
        place = str(folder.path / "experiment.yaml")
        try:
            experiment = read_experiment(folder.experiment_yaml, place)
        except InputError as error:
            raise RunFolderError(str(error)) from error
        for _, working_folder in arms(folder.plan):
            if not working_folder.is_dir():
                raise InputError(
                    f"the experiment's folder {working_folder} is not there any more",
                    hint="commands and texts are looked for in it: put it back",
                )
        _check_torch(read_machine())
        if _has_trials_left(folder):
            _run_prepare_steps(folder.plan)
        return _run_in(folder, experiment)


def dry_run(wanted: Wanted, runs_folder: Path) -> int:
    """Print the schedule and what each rank would be given. Runs nothing."""
    prepared = _prepare(wanted, runs_folder)
    plan = prepared.plan
    for line in schedule_lines(plan):
        write(f"{line}\n")
    folders = _folders(plan, runs_folder / "RUN" / "logs")
    platform = _platform(prepared.experiment, folders)
    seen: set[tuple[str, ...]] = set()
    for launch in plan.launches:
        keys = tuple(sorted({trial.case_key for trial in launch.trials}))
        if keys in seen:
            continue
        seen.add(keys)
        cases = tuple(plan.case(trial.case_key) for trial in launch.trials)
        request = LaunchRequest(
            launch_id=launch.launch_id,
            cases=cases,
            cores_per_node=launch.cores_per_node,
            limits=plan.limits,
        )
        write(f"\nranks of launch {launch.launch_id} and of those with the same cases:\n")
        for command in torchrun_lines(request, folders, platform.rank_commands(request)):
            write(f"{command}\n")
        for command in prepare_lines(request, folders):
            write(f"before any launch, once on this host:\n{command}\n")
    return REFUSED_EXIT_CODE if prepared.is_fallback else 0


def _prepare(wanted: Wanted, runs_folder: Path) -> Prepared:
    """Read, look around, fall back where nodes are refused, plan, and say all of it."""
    loaded = load(wanted.name_or_path, wanted.overrides, wanted.engine)
    experiment = loaded.experiment if wanted.change is None else wanted.change(loaded.experiment)
    against = None
    if wanted.against is not None:
        against = read_against(
            wanted.against,
            experiment.platform,
            wanted.fail_above_ratio,
            runs_folder=runs_folder,
        )
    machine = read_machine()
    is_fallback = experiment.platform == "emulated" and not machine.can_emulate
    for line in machine_lines(machine):
        say(line)
    if is_fallback:
        _say_refusal(machine)
        experiment = on_local_platform(experiment, machine)
        if against is not None:
            local = on_local_platform(against.experiment, machine)
            against = replace(against, experiment=local)
    plan = make_plan(experiment, machine, working_folder=str(loaded.folder), against=against)
    _check_torch(machine)
    for cases, folder in arms(plan):
        check_commands(cases, folder, is_prepared=False)
        check_training_data(cases, folder)
    for line in plan_lines(experiment, plan):
        say(line)
    return Prepared(experiment=experiment, plan=plan, is_fallback=is_fallback)


def _say_refusal(machine: MachineFacts) -> None:
    say(f"no nodes   can be emulated on this machine: {machine.refusal}")
    say(f"fix        {machine.fix or 'unknown: run as root, or on another machine'}")
    say("instead    what needs no second node runs on the local platform; exit code 4")


def _check_torch(machine: MachineFacts) -> None:
    if machine.torch is None:
        raise InputError(
            "measuring needs torch, which is not installed here",
            hint="pip install 'broadgauge[torch]'",
        )


def _end_with_parent() -> None:
    """In the child, before it becomes the command: the kernel ends it when the tool is gone."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _has_trials_left(folder: RunFolder) -> bool:
    """Is there anything to prepare for?"""
    stored = {record.record_id for record in folder.records}
    return any(t.trial_id not in stored for launch in folder.plan.launches for t in launch.trials)


def _run_prepare_steps(plan: Plan) -> None:
    """What a user's command needs from outside is fetched before any node exists."""
    for cases, folder in arms(plan):
        steps = {
            case.workload.prepare: case.workload.name
            for case in cases
            if isinstance(case.workload, CommandWorkload) and case.workload.prepare
        }
        for command, name in steps.items():
            _run_prepare_step(command, name, folder)
        check_commands(cases, folder, is_prepared=True)


def _run_prepare_step(command: tuple[str, ...], name: str, folder: Path) -> None:
    say(f"prepare    {name}: {' '.join(command)}")
    try:
        ended = subprocess.run(
            command,
            cwd=folder,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=2,  # results alone go to stdout
            preexec_fn=_end_with_parent,
        )
    except OSError as error:
        raise InputError(f"`prepare` of {name} can't be run: {error}") from None
    if ended.returncode != 0:
        raise InputError(f"`prepare` of {name} ended with exit code {ended.returncode}")


def _platform(experiment: Experiment, folders: LaunchFolders) -> Platform:
    is_emulated = experiment.platform == "emulated"
    return EmulatedPlatform(folders) if is_emulated else LocalPlatform(folders)


def _folders(plan: Plan, logs: Path) -> LaunchFolders:
    return LaunchFolders(
        logs=logs,
        working=Path(plan.working_folder),
        baseline=None if plan.baseline is None else Path(plan.baseline.working_folder),
    )


def _run_in(folder: RunFolder, experiment: Experiment, code_if_good: int = 0) -> int:
    """Run what is left of the folder's plan, then show it.

    Returns the exit code: of trials that failed, else the one given, else the gate's.
    """
    try:
        return _run_and_show(folder, experiment, code_if_good)
    except Interrupt:  # outside of a trial: one in a trial is a result
        _say_how_to_go_on(folder)
        raise


def _run_and_show(folder: RunFolder, experiment: Experiment, code_if_good: int) -> int:
    console = PlainConsole(stderr=True)
    display = LiveLine(console) if console.is_terminal else PlainLines(console)
    interrupts = Interrupts()
    with folder, signals_to(interrupts):
        plan = folder.plan
        platform = _platform(experiment, _folders(plan, folder.log_folder))
        services = Services(
            merger=merge,
            judge=_judge,
            peak_flops=_peak_flops,
            observer=display,
            interrupts=interrupts,
        )
        known = set(platform.notes)
        with display:
            result = run(plan, platform, folder, services)
        for note in platform.notes:
            if note not in known:
                say(f"note       {note}")
    gate_code = _show(folder, result)
    return result.exit_code or code_if_good or gate_code


def _show(folder: RunFolder, result: RunResult) -> int:
    """The tables, the report and where they are. Returns the gate's exit code."""
    # Here, so that a plan, which shows nothing of this, starts without numpy.
    from broadgauge.cli.compare import show_arms
    from broadgauge.report.html import write_report
    from broadgauge.report.terminal import print_closing_table
    from broadgauge.results.arms import of_arm

    gate_code = 0
    if result.interrupted_by is None:
        summary = read_summary(folder.path)
        with results_console() as console:
            print_closing_table(of_arm(summary, "candidate"), console)
            gate_code = show_arms(summary, console)
        report = write_report(summary)
        say(f"report     {report}")
    say(result.message)
    if result.interrupted_by is not None:
        _say_how_to_go_on(folder)
    return gate_code


def _say_how_to_go_on(folder: RunFolder) -> None:
    say(f"go on with: {program()} run --resume {shlex.quote(str(folder.path))}")


def _judge(case: Case, record: Record, series: Series) -> tuple[Finding, ...]:
    """What advise says of a trial, from its per-step series of seconds among others."""
    per_step = {
        name: [value for value in values if isinstance(value, float)]
        for name, values in series.items()
    }
    return findings(case, record, {name: values for name, values in per_step.items() if values})


def _peak_flops(case: Case, environment: Environment) -> float | None:
    """FLOP/s of one GPU in the workload's data type; None on CPUs and for unknown GPUs."""
    if (
        case.device != "cuda"
        or not environment.gpus
        or not isinstance(case.workload, TrainWorkload)
    ):
        return None
    gpu = find_gpu(environment.gpus[0].name)
    return None if gpu is None else gpu.peak_flops(case.workload.dtype)
