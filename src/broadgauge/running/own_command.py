"""What would a user's own command run on each node, and is it there?"""

import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from broadgauge.platforms.launch_folders import LaunchFolders
from broadgauge.probes.command import torchrun_command
from broadgauge.probes.identity import RankIdentity
from broadgauge.specs.base import did_you_mean
from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError
from broadgauge.specs.launching import LaunchRequest
from broadgauge.specs.workload import CommandWorkload


def check_commands(cases: Iterable[Case], working_folder: Path, *, is_prepared: bool) -> None:
    """Are the scripts there? Raises InputError. `prepare` may fetch them: then only after it."""
    workloads = (case.workload for case in cases)
    for workload in workloads:
        if isinstance(workload, CommandWorkload) and (is_prepared or not workload.prepare):
            _check_command(workload, working_folder)


def torchrun_lines(
    request: LaunchRequest, folders: LaunchFolders, rank_lines: Iterable[str]
) -> Iterator[str]:
    """Below each node's line: what is started there, as a shell would take it."""
    workloads = {case.key: case for case in request.cases}
    for rank_line in rank_lines:
        yield rank_line
        for case in workloads.values():
            if isinstance(case.workload, CommandWorkload):
                folder = _folder(case.workload, folders.working_of(request.arm))
                log_stem = folders.log_stem(request.launch_id)
                words = _torchrun_words(case, case.workload, log_stem, rank_line)
                yield f"  cd {shlex.quote(str(folder))} && {shlex.join(words)}"


def prepare_lines(request: LaunchRequest, folders: LaunchFolders) -> Iterator[str]:
    """What runs once on the host before any launch, as a shell would take it."""
    folder = shlex.quote(str(folders.working_of(request.arm)))
    commands = (
        case.workload.prepare
        for case in request.cases
        if isinstance(case.workload, CommandWorkload) and case.workload.prepare
    )
    for command in dict.fromkeys(commands):
        yield f"cd {folder} && {shlex.join(command)}"


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
        for word in torchrun_command(case, workload, identity, log)
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
