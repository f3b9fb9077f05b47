"""Are the files of all workloads there, and what would be started for them?"""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from broadgauge.platforms.launch_folders import LaunchFolders
from broadgauge.running.kinds.registry import in_running
from broadgauge.specs.case import Case
from broadgauge.specs.launching import LaunchRequest
from broadgauge.specs.platforms import ON_OTHER_MACHINES, PlatformKind

WORK_WORD, LOGS_WORD = "{work}", "{logs}"
"""Stand for folders of another machine."""


def check_files(
    cases: Iterable[Case],
    working_folder: Path,
    platforms: Sequence[PlatformKind],
    *,
    is_prepared: bool,
) -> None:
    """Of cases that run on this machine. Raises InputError.

    `platforms`: the experiment's; cases of a single one don't name it. `prepare` may fetch some
    files: those are looked for only after it.
    """
    for case in cases:
        if (case.platform or platforms[0]) not in ON_OTHER_MACHINES:
            in_running(case.workload).check_files(working_folder, is_prepared=is_prepared)


def started_lines(
    request: LaunchRequest,
    folders: LaunchFolders,
    rank_lines: Iterable[str],
    *,
    is_elsewhere: bool = False,
) -> Iterator[str]:
    """Below each process' line: what it starts, as a shell would take it. `is_elsewhere`: on other
    machines, where folders have no names yet."""
    cases = {case.key: case for case in request.cases}
    folder, log_stem = folders.working_of(request.arm), folders.log_stem(request.launch_id)
    if is_elsewhere:
        folder, log_stem = Path(WORK_WORD), f"{LOGS_WORD}/{request.launch_id}"
    for rank_line in rank_lines:
        yield rank_line
        for case in cases.values():
            yield from in_running(case.workload).lines_below(
                case, folder, log_stem, rank_line, is_elsewhere=is_elsewhere
            )


def prepare_lines(request: LaunchRequest, folders: LaunchFolders) -> Iterator[str]:
    """What runs once on the host before any launch, as a shell would take it."""
    folder = shlex.quote(str(folders.working_of(request.arm)))
    for command in prepare_steps(request.cases):
        yield f"cd {folder} && {shlex.join(command)}"


def prepare_steps(cases: Iterable[Case]) -> dict[tuple[str, ...], str]:
    """Each command that runs before any node exists, once, and the workload that asks for it."""
    asked = ((in_running(case.workload).prepare, case.workload.name) for case in cases)
    return {command: name for command, name in asked if command}
