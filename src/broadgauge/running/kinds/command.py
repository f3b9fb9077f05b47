"""What would a user's own command run on each node, and is it there?"""

import os
import posixpath
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from broadgauge.messages.pythons import NoSuchPythonError, find_python
from broadgauge.messages.waiting_limits import waiting_limit_s
from broadgauge.probes.command import torchrun_command
from broadgauge.probes.identity import RankIdentity
from broadgauge.running.kinds.kind import KindInRunning
from broadgauge.specs.base import did_you_mean
from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError
from broadgauge.specs.workloads.tasks import command_task, layout_of
from broadgauge.specs.workloads.training_config import TrainingConfig
from broadgauge.specs.workloads.workload import CommandWorkload

PYTHON_HINT = "an interpreter, the folder of an environment, or a conda environment's name"
_PYTHON_LIMIT_S = waiting_limit_s(60.0)
"""For an interpreter to start, from a cold disk too."""


@dataclass(frozen=True, slots=True)
class CommandInRunning(KindInRunning):
    """A command as it is started."""

    command: CommandWorkload

    @property
    def prepare(self) -> tuple[str, ...] | None:
        return self.command.prepare

    @property
    def holds_what_is_known(self) -> bool:
        return False

    @property
    def torchrun_words(self) -> tuple[str, ...]:
        return self.command.words

    @property
    def named_files(self) -> tuple[str, ...]:
        """`config` is read already, and goes along for people and scripts that look into it."""
        return (*self.command.words, *self._config_files)

    @property
    def needed_files(self) -> tuple[str, ...]:
        """Its script, if it is not a module and not another machine's by its path."""
        script = self.command.words[0]
        return () if script.startswith(("-", "/")) else (script,)

    @property
    def own_words(self) -> dict[str, tuple[str, ...]]:
        config = self.command.config
        return {
            "command": self.command.command,
            "config": config.arguments if isinstance(config, TrainingConfig) else (),
            "prepare": self.command.prepare or (),
        }

    @property
    def _config_files(self) -> tuple[str, ...]:
        """From where the command runs."""
        config = self.command.config
        if not isinstance(config, TrainingConfig) or config.file.startswith("/"):
            return ()
        return (posixpath.relpath(config.file, self.folder or "."),)

    @property
    def folder(self) -> str | None:
        return self.command.working_directory

    @property
    def left_on_this_machine(self) -> tuple[str, ...]:
        given = {"python": self.command.python, "prepare": self.command.prepare}
        return tuple(key for key, value in given.items() if value is not None)

    def check_files(self, working_folder: Path, *, is_prepared: bool) -> None:
        if is_prepared or not self.command.prepare:
            _check_command(self.command, working_folder)

    def lines_below(
        self,
        case: Case,
        working_folder: Path,
        log_stem: str,
        rank_line: str,
        *,
        is_elsewhere: bool,
    ) -> Iterator[str]:
        folder = shlex.quote(str(_folder(self.command, working_folder)))
        if is_elsewhere:  # its process starts torchrun by its own Python, behind its variables
            python = self.command.python or shlex.split(rank_line)[-3]
        else:
            python = _shown_python(self.command, working_folder)
        words = _torchrun_words(case, self.command, log_stem, rank_line, python)
        yield f"  cd {folder} && {shlex.join(words)}"


def _torchrun_words(
    case: Case, workload: CommandWorkload, log_stem: str, rank_line: str, python: str
) -> list[str]:
    """The port of a local launch is chosen when it starts, so words stand in its place."""
    words = shlex.split(rank_line)
    variables = dict(word.split("=", 1) for word in words if "=" in word)
    port = variables["MASTER_PORT"]
    known = variables | {"MASTER_PORT": port if port.isdigit() else "0"}
    identity = RankIdentity.from_environment(known)
    folder = Path(f"{log_stem}.rank{identity.rank}.torchrun")
    return [
        f"--master-port={port}" if word == f"--master-port={identity.master_port}" else word
        for word in torchrun_command(
            layout_of(case), command_task(workload), identity, folder, python
        )
    ]


def _folder(workload: CommandWorkload, working_folder: Path) -> Path:
    return working_folder / (workload.working_directory or "")


def _check_command(workload: CommandWorkload, working_folder: Path) -> None:
    folder = _folder(workload, working_folder)
    if not folder.is_dir():
        raise InputError(
            f"`working_directory` of {workload.name}: no such folder: {folder}",
            hint="it starts from the experiment file's folder",
        )
    python = _python_of(workload, working_folder)
    if python is not None:
        _check_torch(workload, python)
    script = workload.words[0]
    if script.startswith("-") or (folder / script).exists():
        return
    raise InputError(
        f"`command` of {workload.name}: no file `{script}` in {folder}",
        hint=did_you_mean(script, _scripts_near(folder, script)),
    )


def _python_of(workload: CommandWorkload, working_folder: Path) -> str | None:
    """None: Broadgauge's own. Raises InputError."""
    if workload.python is None:
        return None
    try:
        return str(find_python(workload.python, working_folder, os.environ))
    except NoSuchPythonError as error:
        raise InputError(
            f"workload {workload.name}: {error}",
            hint=PYTHON_HINT,
        ) from error


def _shown_python(workload: CommandWorkload, working_folder: Path) -> str:
    """As it was given where it is not there."""
    if workload.python is None:
        return sys.executable
    try:
        return str(find_python(workload.python, working_folder, os.environ))
    except NoSuchPythonError:
        return workload.python


def _check_torch(workload: CommandWorkload, python: str) -> None:
    """torchrun is a part of torch. Raises InputError."""
    code = "from importlib.util import find_spec; print('torch:', find_spec('torch') is not None)"
    place = f"`python` of {workload.name}: {python}"
    try:
        ended = subprocess.run(
            [python, "-c", code],
            capture_output=True,
            check=False,
            timeout=_PYTHON_LIMIT_S,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        message = f"{place} does not run: no answer in {_PYTHON_LIMIT_S:.0f} s"
        raise InputError(message, hint=PYTHON_HINT) from None
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        raise InputError(f"{place} does not run: {why}", hint=PYTHON_HINT) from error
    said = ended.stdout.decode(errors="replace").split()
    if said[-2:] == ["torch:", "False"]:
        raise InputError(
            f"{place} has no torch, which torchrun is a part of",
            hint=f"{python} -m pip install torch",
        )
    if ended.returncode or said[-2:] != ["torch:", "True"]:
        lines = ended.stderr.decode(errors="replace").strip().splitlines()
        why = f"it ended with {ended.returncode}" + (f": {lines[-1][:200]}" if lines else "")
        raise InputError(f"{place} is no Python 3 that runs: {why}", hint=PYTHON_HINT)


def _scripts_near(folder: Path, script: str) -> list[str]:
    """Python files in the folder that the script was looked for in, as `command` names them."""
    meant = (folder / script).parent
    around = meant if meant.is_dir() else folder
    start = folder if around.is_relative_to(folder) else Path("/")
    return [str(path.relative_to(start)) for path in sorted(around.glob("*.py"))]
