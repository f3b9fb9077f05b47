"""How is a machine calibrated? Its device in processes of its own, its paths by a small run."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from broadgauge.engine.interrupts import Interrupt, Interrupts
from broadgauge.engine.ports import unobserved
from broadgauge.platforms.host_facts import make_environment
from broadgauge.results.model import RunSummary
from broadgauge.results.run_path import RUNS_FOLDER, read_summary
from broadgauge.running.calibration.device import MeasuredDevice, measure_device
from broadgauge.running.calibration.experiment import calibration_experiment, paths_of, trained_of
from broadgauge.running.events import RunObserver
from broadgauge.running.experiments import LoadedExperiment
from broadgauge.running.preparing import RunOptions, prepare
from broadgauge.running.starting import start
from broadgauge.specs.case import Device
from broadgauge.specs.errors import PlatformError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.machines.machine import MachineFacts
from broadgauge.specs.machines.system import (
    DeviceOfSystem,
    MachineOfSystem,
    PathTimes,
    System,
    TrainedStep,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationObserver:
    """Whom to tell while it goes on, and who may end it."""

    device: Callable[[str], object] = unobserved
    """What of the device is being measured, in words."""
    run: RunObserver = unobserved
    interrupts: Interrupts | None = None


def calibrate(
    machine: MachineFacts,
    device: Device,
    *,
    runs_folder: Path = Path(RUNS_FOLDER),
    telling: CalibrationObserver | None = None,
) -> System:
    """What can this machine do? Some minutes; the run of its paths is kept as any other.

    Raises LaunchError (the device), PlatformError (no path could be measured) and Interrupt.
    """
    telling = telling or CalibrationObserver()
    began_unix_s = time.time()
    measured = measure_device(machine, device, telling.device)
    notes = list(measured.notes)
    paths: tuple[PathTimes, ...] = ()
    trained: tuple[TrainedStep, ...] = ()
    nccl = None
    experiment = calibration_experiment(machine, device)
    if experiment is None:
        notes.append("one rank has no path to another: collectives were not measured")
    else:
        summary = _measure_paths(experiment, machine, runs_folder, telling)
        failed = [case for case in summary.cases if case.num_failed]
        notes += [f"{case.case.label} failed: not in this file" for case in failed]
        paths, trained = paths_of(summary), trained_of(summary)
        nccl = next((each.nccl for each in summary.environments.values()), None)
    return System(
        format="broadgauge system",
        version=1,
        measured_unix_s=round(began_unix_s, 0),
        **_facts(machine, device, measured, nccl),
        compute=measured.compute,
        paths=paths,
        trained=trained,
        notes=tuple(notes),
    )


def _measure_paths(
    experiment: Experiment, machine: MachineFacts, runs_folder: Path, telling: CalibrationObserver
) -> RunSummary:
    """The small run over each path."""
    loaded = LoadedExperiment(experiment=experiment, source="calibration", folder=Path.cwd())
    prepared = prepare(loaded, RunOptions(runs_folder=runs_folder), machine=machine)
    finished = start(prepared, observer=telling.run, interrupts=telling.interrupts)
    if finished.result.interrupted_by is not None:
        raise Interrupt(finished.result.interrupted_by)
    summary = read_summary(finished.folder)
    if not any(case.num_ok for case in summary.cases):
        raise PlatformError(
            "no path could be measured: every trial failed",
            hint=f"`broadgauge show {finished.location}` says why",
        )
    return summary


def _facts(
    machine: MachineFacts, device: Device, measured: MeasuredDevice, nccl: str | None
) -> dict[str, Any]:
    """The parts of the file that say what was measured."""
    hello = {**measured.software, "nccl": nccl}
    found = make_environment("", hello, gpus=(), variables={}, working_folder=Path.cwd())
    gpus = machine.gpus if device == "cuda" else ()
    return {
        "broadgauge": found.broadgauge,
        "machine": MachineOfSystem(
            hostname=machine.hostname,
            cpu=found.cpu,
            cores=len(machine.cores),
            memory_bytes=machine.memory_bytes,
            kernel=found.kernel,
            python=found.python,
            torch=found.torch or machine.torch or "unknown",
            nccl=found.nccl,
            cuda=found.cuda,
            driver=found.driver,
        ),
        "device": DeviceOfSystem(
            kind=device,
            name=gpus[0].name if gpus else found.cpu or "cpu",
            count=len(gpus) or measured.ranks,
            memory_bytes=gpus[0].memory_bytes if gpus else machine.memory_bytes,
            threads=measured.threads,
        ),
    }
