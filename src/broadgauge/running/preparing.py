"""What does an experiment mean here, and is all there that it needs? Nothing is run or written."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from broadgauge.agent.taken_cores import CoresLook, look
from broadgauge.engine.plan import make_plan, without_emulation
from broadgauge.engine.ports import unobserved
from broadgauge.platforms.machine import read_machine
from broadgauge.results.run_path import RUNS_FOLDER
from broadgauge.running.baseline import arms, read_against
from broadgauge.running.events import MachineRead, NodesRefused, PlanMade, RunObserver
from broadgauge.running.experiments import LoadedExperiment
from broadgauge.running.limit_factor import refuse_wrong_factor
from broadgauge.running.platforms import read_devices
from broadgauge.running.what_is_started import check_files
from broadgauge.specs.errors import InputError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.machines.machine import MachineFacts, MachineGpu
from broadgauge.specs.plan import Plan
from broadgauge.specs.platforms import ON_OTHER_MACHINES, Devices
from broadgauge.specs.secrets.values import Secrets

_MOST_NAMED = 8
"""Hosts, of up to 256."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What is asked of a run, beside what its experiment says."""

    runs_folder: Path = Path(RUNS_FOLDER)
    """Where the run's own folder is made."""
    against: str | None = None
    """A run folder or `last`: its cases are repeated beside the experiment's."""
    fail_above_ratio: float | None = None
    """With `against`: the slowdown that is too much, 0.03 for 3 %; None: it is only shown."""
    keep_going: bool = False
    """Run every launch of a case, also where it failed alike before."""
    assumed_gpus: int | None = None
    """For a dry run: this machine as if it had so many GPUs, and torch; None: as it is."""


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
    assumed_gpus: int | None
    """Not None: only a dry run can be made of it."""
    looked: CoresLook | None = None
    """This machine's cores when it was planned, so that a run can say who else uses them."""


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
    refuse_wrong_factor()
    options = options or RunOptions()
    experiment = loaded.experiment
    against = None
    if options.against is not None:
        against = read_against(
            options.against,
            experiment.platforms,
            options.fail_above_ratio,
            runs_folder=options.runs_folder,
        )
    machine = _assumed(machine or read_machine(), options.assumed_gpus)
    looked = look()  # after the trial of namespaces, which the kernel clears away by itself
    if not ON_OTHER_MACHINES.issuperset(experiment.platforms):  # else it takes no part
        observer(MachineRead(machine=machine))
    is_fallback = "emulated" in experiment.platforms and not machine.can_emulate
    if is_fallback:
        observer(NodesRefused(machine=machine))
        emulated = read_devices("emulated", machine, experiment)
        experiment = without_emulation(experiment, emulated)
        if against is not None:
            others = without_emulation(against.experiment, emulated)
            against = replace(against, experiment=others)
    devices = {kind: read_devices(kind, machine, experiment) for kind in experiment.platforms}
    plan = make_plan(experiment, devices, working_folder=str(loaded.folder), against=against)
    _check_price(experiment)
    plan = plan.model_copy(update={"keep_going": options.keep_going})
    check_torch(devices.values())
    for cases, folder in arms(plan):
        check_files(cases, folder, experiment.platforms, is_prepared=False)
    observer(PlanMade(experiment=experiment, plan=plan))
    return Prepared(
        experiment=experiment,
        plan=plan,
        secrets=Secrets(literals=loaded.secrets, environment=os.environ),
        runs_folder=options.runs_folder,
        is_fallback=is_fallback,
        assumed_gpus=options.assumed_gpus,
        looked=looked,
    )


def _check_price(experiment: Experiment) -> None:
    """Is the node whose price is taken known, with a price? Raises InputError."""
    if experiment.cost is None or experiment.cost.node is None:
        return
    from broadgauge.catalog.catalog import shipped_catalog  # a tenth of a second

    catalog, name = shipped_catalog(), experiment.cost.node
    node = catalog.node(name)
    if not any(price.node == node.name for price in catalog.prices):
        raise InputError(
            f"cost: no price of {node.name} is known",
            hint="write it yourself: `usd_per_node_hour`, or `usd_per_gpu_hour`",
        )


def _assumed(machine: MachineFacts, num_gpus: int | None) -> MachineFacts:
    """The machine with so many GPUs, of which nothing else is known."""
    if num_gpus is None:
        return machine
    gpus = (MachineGpu(name="assumed, not here", memory_bytes=0),) * num_gpus
    return replace(machine, gpus=gpus, torch=machine.torch or "assumed")


def check_torch(devices: Iterable[Devices]) -> None:
    """Can anything be measured there, as far as is known before ranks start? Raises InputError."""
    without = [python for each in devices for python in each.without_torch]
    here = next((each for each in without if each.host is None), None)
    if here is not None:
        raise InputError(
            f"measuring needs torch, which is not installed here for {here.python}",
            hint="pip install 'broadgauge[torch]'",
        )
    if without:
        told = [f"{each.host}: {each.python}, {each.field}" for each in without]
        more = [f"{len(told) - _MOST_NAMED} more"] if len(told) > _MOST_NAMED else []
        raise InputError(
            f"measuring needs torch, and the Python of {_hosts(len(told))} has none: "
            + "; ".join([*told[:_MOST_NAMED], *more]),
            hint="install torch for it there, or set `hosts[].python` to the path of the Python "
            "that has torch",
        )


def _hosts(number: int) -> str:
    return "1 host" if number == 1 else f"{number} hosts"
