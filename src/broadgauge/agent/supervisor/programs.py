"""What does a rank run, with which variables, and where does this machine keep its files?"""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from broadgauge.messages.launch_order import LaunchOrder, Program, RankPlan
from broadgauge.messages.launcher_variables import is_set_by_a_launcher
from broadgauge.messages.own_archive import zip_file


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """Where this machine has what an order names."""

    logs: Path
    """Of ranks, and what libraries write beside them."""
    working: Path
    """Where ranks start, and relative paths of a task."""


def argv_of(program: Program) -> tuple[str, ...]:
    """Our own programs run with this Python, from this package or its zip file."""
    if isinstance(program, tuple):
        return program
    archive = zip_file()
    if archive is not None:
        return (sys.executable, str(archive), program)
    # -P: a file of the user's in the working folder must not stand in for a module.
    return (sys.executable, "-P", "-m", f"broadgauge.probes.{program}")


def rank_environment(
    launch: LaunchOrder, plan: RankPlan, folders: Folders, inherited: Mapping[str, str]
) -> dict[str, str]:
    """What this process has of its own, then the launch's, then the rank's; but what another
    launcher set for its own ranks."""
    own = {name: value for name, value in inherited.items() if not is_set_by_a_launcher(name)}
    paths = {name: os.path.join(folders.logs, path) for name, path in plan.log_paths.items()}  # noqa: PTH118  its end may be a prefix
    return own | launch.environment | plan.environment | paths
