"""What does an experiment mean here, and is all there that it needs? Nothing is run or written."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from broadgauge.engine.plan import make_plan, on_local_platform
from broadgauge.engine.ports import unobserved
from broadgauge.platforms.machine import read_machine
from broadgauge.results.run_path import RUNS_FOLDER
from broadgauge.running.baseline import arms, read_against
from broadgauge.running.events import MachineRead, NodesRefused, PlanMade, RunObserver
from broadgauge.running.experiments import LoadedExperiment
from broadgauge.running.what_is_started import check_files
from broadgauge.specs.errors import InputError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.machine import MachineFacts
from broadgauge.specs.plan import Plan
from broadgauge.specs.secrets import Secrets


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What is wished of a run, beside what its experiment says."""

    runs_folder: Path = Path(RUNS_FOLDER)
    """Where the run's own folder is made."""
    against: str | None = None
    """A run folder or `last`: its cases are repeated beside the experiment's."""
    fail_above_ratio: float | None = None
    """With `against`: the slowdown that is too much, 0.03 for 3 %; None: it is only shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """An experiment, and what it means on this machine."""

    experiment: Experiment
    """As it will be run and stored."""
    plan: Plan
    secrets: Secrets
    """Where the true values are of those that the cases name."""
    runs_folder: Path
    is_fallback: bool
    """Nodes were refused: this is what can run on the local platform."""


def prepare(
    loaded: LoadedExperiment,
    options: RunOptions | None = None,
    *,
    machine: MachineFacts | None = None,
    observer: RunObserver = unobserved,
) -> Prepared:
    """Look around, fall back where nodes are refused, and plan.

    `machine`: what the caller has read of it; None: it is read now. Raises InputError (what can't
    be run here) and RunFolderError (the run to compare with can't be read).
    """
    options = options or RunOptions()
    experiment = loaded.experiment
    against = None
    if options.against is not None:
        against = read_against(
            options.against,
            experiment.platform,
            options.fail_above_ratio,
            runs_folder=options.runs_folder,
        )
    machine = machine or read_machine()
    observer(MachineRead(machine=machine))
    is_fallback = experiment.platform == "emulated" and not machine.can_emulate
    if is_fallback:
        observer(NodesRefused(machine=machine))
        experiment = on_local_platform(experiment, machine)
        if against is not None:
            local = on_local_platform(against.experiment, machine)
            against = replace(against, experiment=local)
    plan = make_plan(experiment, machine, working_folder=str(loaded.folder), against=against)
    check_torch(machine)
    for cases, folder in arms(plan):
        check_files(cases, folder, is_prepared=False)
    observer(PlanMade(experiment=experiment, plan=plan))
    return Prepared(
        experiment=experiment,
        plan=plan,
        secrets=Secrets(literals=loaded.secrets, environment=os.environ),
        runs_folder=options.runs_folder,
        is_fallback=is_fallback,
    )


def check_torch(machine: MachineFacts) -> None:
    """Can anything be measured here? Raises InputError."""
    if machine.torch is None:
        raise InputError(
            "measuring needs torch, which is not installed here",
            hint="pip install 'broadgauge[torch]'",
        )
