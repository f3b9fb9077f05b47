"""What would each rank be given, if the run were started? Starts nothing."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from broadgauge.messages.leader import INTERFACES_WORD, LIFE_WORD, MASTER_WORD, PORT_WORD
from broadgauge.running.platforms import MakePlatform, folders_of, make_platform, open_platforms
from broadgauge.running.preparing import Prepared
from broadgauge.running.what_is_started import (
    LOGS_WORD,
    WORK_WORD,
    prepare_lines,
    started_lines,
)
from broadgauge.specs.launching import LaunchRequest
from broadgauge.specs.plan import Plan
from broadgauge.specs.platforms import ON_OTHER_MACHINES

FILLED_IN = {
    MASTER_WORD: "the first node's address",
    PORT_WORD: "a free port there",
    INTERFACES_WORD: "the interfaces of the network",
    LIFE_WORD: "the launch's name",
    WORK_WORD: "the folder with your files",
    LOGS_WORD: "that for logs",
}
"""What stands for what is known where it runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchCommands:
    """What a launch starts, as a shell would take it."""

    launch_id: str
    """The first one; later ones with the same cases start the same."""
    ranks: tuple[str, ...]
    """Each rank's environment and command; below a command's, what torchrun is given."""
    prepare: tuple[str, ...]
    """Once on this host, before any launch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    plan: Plan
    launches: tuple[LaunchCommands, ...]
    """One for each set of cases that share a launch."""

    @property
    def filled_in(self) -> dict[str, str]:
        """Words of the ranks' lines that stand for what is known where it runs, and for what."""
        lines = [line for launch in self.launches for line in launch.ranks]
        return {word: what for word, what in FILLED_IN.items() if any(word in x for x in lines)}


def dry_run(prepared: Prepared, *, platform_of: MakePlatform | None = None) -> DryRun:
    """Raises PlatformError and LaunchError where a launch could not be made here."""
    platform_of = platform_of or partial(
        make_platform,
        assumed_gpus=prepared.assumed_gpus,
        experiment=prepared.experiment,
        cases=prepared.plan.cases,
    )
    return DryRun(plan=prepared.plan, launches=tuple(_launches(prepared, platform_of)))


def _launches(prepared: Prepared, platform_of: MakePlatform) -> Iterator[LaunchCommands]:
    plan = prepared.plan
    folders = folders_of(plan, prepared.runs_folder / "RUN" / "logs")
    platform = open_platforms(
        prepared.experiment.platforms, lambda kind: platform_of(kind, folders, prepared.secrets)
    )
    seen: set[tuple[str, ...]] = set()
    for launch in plan.launches:
        keys = tuple(sorted({trial.case_key for trial in launch.trials}))
        if keys in seen:
            continue
        seen.add(keys)
        request = LaunchRequest(
            launch_id=launch.launch_id,
            cases=tuple(plan.case(trial.case_key) for trial in launch.trials),
            cores_per_node=launch.cores_per_node,
            limits=plan.limits,
        )
        ranks = platform.rank_commands(request)
        kind = request.cases[0].platform or prepared.experiment.platforms[0]
        yield LaunchCommands(
            launch_id=launch.launch_id,
            ranks=tuple(
                started_lines(request, folders, ranks, is_elsewhere=kind in ON_OTHER_MACHINES)
            ),
            prepare=tuple(prepare_lines(request, folders)),
        )
