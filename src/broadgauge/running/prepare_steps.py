"""What does a user's command need from outside? Fetched before any node exists."""

import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from broadgauge.agent.emulated.syscalls import PR_SET_PDEATHSIG, prctl
from broadgauge.running.baseline import arms
from broadgauge.running.events import PrepareStepBegins, RunObserver
from broadgauge.running.what_is_started import check_files, prepare_steps
from broadgauge.specs.errors import InputError
from broadgauge.specs.plan import Plan
from broadgauge.specs.platforms import PlatformKind


def run_prepare_steps(plan: Plan, platforms: Sequence[PlatformKind], observer: RunObserver) -> None:
    """Each `prepare` once in its arm's folder. Raises InputError where one fails."""
    for cases, folder in arms(plan):
        for command, name in prepare_steps(cases).items():
            observer(PrepareStepBegins(workload=name, command=command))
            _run_step(command, name, folder)
        check_files(cases, folder, platforms, is_prepared=True)


def _run_step(command: tuple[str, ...], name: str, folder: Path) -> None:
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


def _end_with_parent() -> None:
    """In the child, before it becomes the command: the kernel ends it when the tool is gone."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
