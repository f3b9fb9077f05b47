"""Which platform runs a plan? The one place that names them all."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import assert_never

from broadgauge.agent.taken_cores import CoresLook
from broadgauge.engine.several_platforms import SeveralPlatforms
from broadgauge.platforms.devices import emulated_devices, local_devices
from broadgauge.platforms.emulated_cluster import EmulatedPlatform
from broadgauge.platforms.launch_folders import LaunchFolders
from broadgauge.platforms.local import LocalPlatform
from broadgauge.specs.case import Case
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.launching import Platform
from broadgauge.specs.machines.machine import MachineFacts
from broadgauge.specs.plan import Plan
from broadgauge.specs.platforms import Devices, PlatformKind
from broadgauge.specs.secrets.values import Secrets

MakePlatform = Callable[[PlatformKind, LaunchFolders, Secrets], Platform]
"""Injected, so that tests run on a fake one. Raises PlatformError where it is refused here."""


def make_platform(
    kind: PlatformKind,
    folders: LaunchFolders,
    secrets: Secrets,
    *,
    experiment: Experiment,
    assumed_gpus: int | None = None,
    cases: Sequence[Case] = (),
    looked: CoresLook | None = None,
) -> Platform:
    """Raises PlatformError where this machine refuses it, or a host can't be used.

    `assumed_gpus`: as if so many were here, for a dry run. `cases`: of the plan, whose secrets go
    where ranks run. `looked`: an earlier look at this machine's cores, where a run is to say who
    else uses them.
    """
    match kind:
        case "emulated":
            return EmulatedPlatform(
                folders, secrets=secrets, assumed_gpus=assumed_gpus, looked=looked
            )
        case "local":
            return LocalPlatform(folders, secrets=secrets, assumed_gpus=assumed_gpus, looked=looked)
        case "hosts":
            from broadgauge.platforms.hosts.platform import HostsPlatform

            return HostsPlatform(
                folders,
                experiment.hosts,
                secrets=secrets,
                cases=cases,
                preflight="first" if experiment.preflight else "no",
            )
        case "kubernetes":
            from broadgauge.running.in_pods import kubernetes_platform

            return kubernetes_platform(folders, experiment, secrets, cases)
        case _:
            assert_never(kind)


def read_devices(kind: PlatformKind, machine: MachineFacts, experiment: Experiment) -> Devices:
    """What does this platform have? `machine`: this one, which is all that some are.

    Raises PlatformError where a host can't be asked; InputError where the experiment must say it.
    """
    match kind:
        case "emulated":
            return emulated_devices(machine)
        case "local":
            return local_devices(machine)
        case "hosts":
            from broadgauge.platforms.hosts.checking import read_hosts
            from broadgauge.platforms.hosts.devices import hosts_devices

            return hosts_devices(experiment.hosts, read_hosts(experiment.hosts))
        case "kubernetes":
            from broadgauge.running.rendering.devices import pod_devices

            return pod_devices(experiment)
        case _:
            assert_never(kind)


def open_platforms(
    kinds: Sequence[PlatformKind], platform_of: Callable[[PlatformKind], Platform]
) -> Platform:
    """The one platform, or all as one. Raises PlatformError, with none left open."""
    if len(kinds) == 1:
        return platform_of(kinds[0])
    with ExitStack() as undo:
        opened: dict[PlatformKind, Platform] = {}
        for kind in kinds:
            opened[kind] = platform_of(kind)
            undo.callback(opened[kind].close)
        undo.pop_all()
    return SeveralPlatforms(opened)


def folders_of(plan: Plan, logs: Path) -> LaunchFolders:
    """Where the launches of this plan write and run."""
    return LaunchFolders(
        logs=logs,
        working=Path(plan.working_folder),
        baseline=None if plan.baseline is None else Path(plan.baseline.working_folder),
    )
