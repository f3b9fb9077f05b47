"""What would a user's own command run on each node, and is it there?"""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from broadgauge.probes.command import torchrun_command
from broadgauge.probes.identity import RankIdentity
from broadgauge.running.kinds.kind import KindInRunning
from broadgauge.specs.base import did_you_mean
from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError
from broadgauge.specs.tasks import command_task, layout_of
from broadgauge.specs.workload import CommandWorkload


@dataclass(frozen=True, slots=True)
class CommandInRunning(KindInRunning):
    """A command as it is started."""

    command: CommandWorkload

    @property
    def prepare(self) -> tuple[str, ...] | None:
        return self.command.prepare

    def check_files(self, working_folder: Path, *, is_prepared: bool) -> None:
        if is_prepared or not self.command.prepare:
            _check_command(self.command, working_folder)

    def lines_below(
        self, case: Case, working_folder: Path, log_stem: str, rank_line: str
    ) -> Iterator[str]:
        folder = shlex.quote(str(_folder(self.command, working_folder)))
        words = _torchrun_words(case, self.command, log_stem, rank_line)
        yield f"  cd {folder} && {shlex.join(words)}"


def _torchrun_words(
    case: Case, workload: CommandWorkload, log_stem: str, rank_line: str
) -> list[str]:
    """The port of a local launch is chosen when it starts, so words stand in its place."""
    words = shlex.split(rank_line)
    variables = dict(word.split("=", 1) for word in words if "=" in word)
    port = variables["MASTER_PORT"]
    known = variables | {"MASTER_PORT": port if port.isdigit() else "0"}
    identity = RankIdentity.from_environment(known)
    log = Path(f"{log_stem}.rank{identity.rank}.log")
    return [
        f"--master-port={port}" if word == f"--master-port={identity.master_port}" else word
        for word in torchrun_command(layout_of(case), command_task(workload), identity, log)
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
    script = workload.command[0]
    if script.startswith("-") or (folder / script).exists():
        return
    raise InputError(
        f"`command` of {workload.name}: no file `{script}` in {folder}",
        hint=did_you_mean(script, _scripts_near(folder, script)),
    )


def _scripts_near(folder: Path, script: str) -> list[str]:
    """Python files in the folder that the script was looked for in, as `command` names them."""
    meant = (folder / script).parent
    around = meant if meant.is_dir() else folder
    start = folder if around.is_relative_to(folder) else Path("/")
    return [str(path.relative_to(start)) for path in sorted(around.glob("*.py"))]
