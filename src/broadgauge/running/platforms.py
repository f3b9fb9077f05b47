"""Which platform runs a plan? The one place that names them all."""

from collections.abc import Callable
from pathlib import Path
from typing import assert_never

from broadgauge.platforms.emulated_cluster import EmulatedPlatform
from broadgauge.platforms.launch_folders import LaunchFolders
from broadgauge.platforms.local import LocalPlatform
from broadgauge.specs.experiment import PlatformKind
from broadgauge.specs.launching import Platform
from broadgauge.specs.plan import Plan
from broadgauge.specs.secrets import Secrets

MakePlatform = Callable[[PlatformKind, LaunchFolders, Secrets], Platform]
"""Injected, so that tests run on a fake one. Raises PlatformError where it is refused here."""


def make_platform(kind: PlatformKind, folders: LaunchFolders, secrets: Secrets) -> Platform:
    """Raises PlatformError where this machine refuses it."""
    match kind:
        case "emulated":
            return EmulatedPlatform(folders, secrets=secrets)
        case "local":
            return LocalPlatform(folders, secrets=secrets)
        case _:
            assert_never(kind)


def folders_of(plan: Plan, logs: Path) -> LaunchFolders:
    """Where the launches of this plan write and run."""
    return LaunchFolders(
        logs=logs,
        working=Path(plan.working_folder),
        baseline=None if plan.baseline is None else Path(plan.baseline.working_folder),
    )
