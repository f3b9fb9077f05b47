"""How does a prepared run become records in its folder, now or when it goes on later?"""

import os
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from broadgauge.advise.findings.shared_cores import shared_now
from broadgauge.agent.taken_cores import CoresLook, look
from broadgauge.engine.events import Noted
from broadgauge.engine.growing import Grower, growable, nothing_more
from broadgauge.engine.interrupts import Interrupts
from broadgauge.engine.ports import unobserved
from broadgauge.engine.run import run
from broadgauge.engine.run_result import RunResult
from broadgauge.platforms.machine import read_machine
from broadgauge.results.folder.run_folder import RunFolder
from broadgauge.running.baseline import arms, refuse_imported
from broadgauge.running.events import FolderOpened, RunObserver
from broadgauge.running.limit_factor import refuse_wrong_factor
from broadgauge.running.platforms import (
    MakePlatform,
    folders_of,
    make_platform,
    open_platforms,
    read_devices,
)
from broadgauge.running.prepare_steps import run_prepare_steps
from broadgauge.running.preparing import Prepared, check_torch
from broadgauge.running.services import make_services
from broadgauge.specs.case import Case
from broadgauge.specs.errors import ExitCode, InputError, RunFolderError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.launching import SeesMachines
from broadgauge.specs.secrets.values import Secrets, SecretTexts
from broadgauge.specs.text.reading import read_with_secrets
from broadgauge.specs.text.writing import dump_experiment


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """A run that has ended, interrupted or not; results/summary.py puts its folder together."""

    folder: Path
    location: str
    """The folder as the user would type it."""
    result: RunResult
    is_fallback: bool = False
    """Nodes were refused, and what could run did run on the local platform."""

    @property
    def exit_code(self) -> ExitCode:
        """Of trials that failed or an interrupt, else of the fallback; a gate's stands aside."""
        if self.result.exit_code is not ExitCode.OK:
            return self.result.exit_code
        return ExitCode.PLATFORM_REFUSED if self.is_fallback else ExitCode.OK


def start(
    prepared: Prepared,
    *,
    observer: RunObserver = unobserved,
    interrupts: Interrupts | None = None,
    platform_of: MakePlatform | None = None,
    grower: Grower = nothing_more,
) -> FinishedRun:
    """Run it, in a new folder.

    `interrupts`: how a signal's handler ends the run in good order (`signals_to`). `grower`: what
    to run next when all that is planned is done. Raises
    InputError (a `prepare` step failed, or a secret is not set), PlatformError and RunFolderError;
    what is stored stays.
    """
    if prepared.assumed_gpus is not None:
        raise InputError("assumed GPUs run nothing", hint="they are for a dry run")
    prepared.secrets.check(prepared.plan.cases)
    if "kubernetes" in prepared.experiment.platforms and platform_of is None:
        from broadgauge.running.in_pods import on_cluster

        experiment, words = on_cluster(prepared.experiment)
        prepared = replace(prepared, experiment=experiment)
        observer(Noted(text=f"on Kubernetes {words}"))
    run_prepare_steps(prepared.plan, prepared.experiment.platforms, observer)
    folder = RunFolder.create(
        prepared.runs_folder,
        plan=prepared.plan if grower is nothing_more else growable(prepared.plan),
        experiment_yaml=dump_experiment(prepared.experiment),
        started_unix_s=time.time(),
    )
    with folder:
        observer(FolderOpened(folder=folder.path))
        result = _run_in(
            folder,
            prepared.experiment,
            prepared.secrets,
            looked=prepared.looked,
            observer=observer,
            interrupts=interrupts,
            platform_of=platform_of,
            grower=grower,
        )
    return FinishedRun(
        folder=folder.path,
        location=folder.location,
        result=result,
        is_fallback=prepared.is_fallback,
    )


def resume(
    path: Path,
    *,
    observer: RunObserver = unobserved,
    interrupts: Interrupts | None = None,
    platform_of: MakePlatform | None = None,
    grower: Grower = nothing_more,
) -> FinishedRun:
    """Go on with the run of this folder: its plan, less what is stored. Raises as `start` does.

    Without the `grower` that it began with, the run ends with what is planned by now.
    """
    refuse_wrong_factor()
    with RunFolder.open_for_resume(path) as folder:
        refuse_imported(folder.plan, folder.path)
        observer(FolderOpened(folder=folder.path))
        for note in folder.notes:
            observer(Noted(text=note))
        experiment, literals = _stored_experiment(folder)
        secrets = Secrets(literals=literals, environment=os.environ)
        for _, working_folder in arms(folder.plan):
            if not working_folder.is_dir():
                raise InputError(
                    f"the experiment's folder {working_folder} is not there any more",
                    hint="commands and texts are looked for in it: put it back",
                )
        machine = read_machine()
        looked = look()
        check_torch(read_devices(kind, machine, experiment) for kind in experiment.platforms)
        if cases_left := _cases_left(folder):
            secrets.check(cases_left)
            run_prepare_steps(folder.plan, experiment.platforms, observer)
        result = _run_in(
            folder,
            experiment,
            secrets,
            looked=looked,
            observer=observer,
            interrupts=interrupts,
            platform_of=platform_of,
            grower=grower,
        )
    return FinishedRun(folder=folder.path, location=folder.location, result=result)


def _stored_experiment(folder: RunFolder) -> tuple[Experiment, SecretTexts]:
    """With the values of secrets that an older version stored in it."""
    try:
        return read_with_secrets(folder.experiment_yaml, str(folder.path / "experiment.yaml"))
    except InputError as error:
        raise RunFolderError(str(error)) from error


def _cases_left(folder: RunFolder) -> list[Case]:
    """What is there to prepare for?"""
    stored = {record.record_id for record in folder.records}
    trials = (trial for launch in folder.plan.launches for trial in launch.trials)
    keys = {trial.case_key for trial in trials if trial.trial_id not in stored}
    return [case for case in folder.plan.cases if case.key in keys]


def _run_in(
    folder: RunFolder,
    experiment: Experiment,
    secrets: Secrets,
    *,
    looked: CoresLook | None,
    observer: RunObserver,
    interrupts: Interrupts | None,
    platform_of: MakePlatform | None,
    grower: Grower,
) -> RunResult:
    """Run what is left of the folder's plan. Who else uses the cores is said first, what the
    platform noted meanwhile last."""
    folders = folders_of(folder.plan, folder.log_folder)
    make = platform_of or partial(
        make_platform, experiment=experiment, cases=folder.plan.cases, looked=looked
    )
    platform = open_platforms(experiment.platforms, lambda kind: make(kind, folders, secrets))
    if isinstance(platform, SeesMachines) and _cases_left(folder):
        for words in shared_now(platform.taken_cores):
            observer(Noted(text=words))
    known = set(platform.notes)
    mask = secrets.masker(folder.plan.cases)
    services = replace(make_services(observer, interrupts or Interrupts(), mask), grower=grower)
    try:
        return run(folder.plan, platform, folder, services)
    finally:
        for note in platform.notes:
            if note not in known:
                observer(Noted(text=note))
