"""Runs an experiment of the toy kind and shows it. `drive.py RUNS_FOLDER`, on the copied package.

Prints the run's folder. The ranks are scripted; everything else is what a user's run is.
"""

# ruff: noqa: T201

import sys
from pathlib import Path

from broadgauge.platforms.launch_folders import LaunchFolders
from broadgauge.platforms.launch_plan import Programs
from broadgauge.platforms.local import LocalPlatform
from broadgauge.running.experiments import load
from broadgauge.running.preparing import RunOptions, prepare
from broadgauge.running.starting import start
from broadgauge.specs.experiment import PlatformKind
from broadgauge.specs.secrets.values import Secrets

HERE = Path(__file__).parent


def scripted(_kind: PlatformKind, folders: LaunchFolders, secrets: Secrets) -> LocalPlatform:
    rank = (sys.executable, str(HERE / "rank.py"))
    return LocalPlatform(folders, secrets=secrets, programs=Programs(worker=rank))


options = RunOptions(runs_folder=Path(sys.argv[1]))
prepared = prepare(load(str(HERE / "experiment.yaml"), ()), options)
finished = start(prepared, platform_of=scripted)
assert finished.exit_code == 0, finished
print(finished.folder)
