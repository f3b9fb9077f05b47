"""How do cases of several platforms run in one run? Each launch asks the platform of its cases.

None of them is told ahead what will be asked of it (`LooksAhead`): one that went on by itself would
not take turns with the others. When the terminal is gone the launch that runs goes on to its
end where its platform can (`RunsWithoutTool`), and `run --resume` collects it.
"""

from collections.abc import Mapping
from contextlib import ExitStack

from broadgauge.agent.taken_cores import TakenCores
from broadgauge.specs.launching import (
    Launch,
    LaunchRequest,
    Platform,
    RunsWithoutTool,
    SeesMachines,
    TrialProgress,
)
from broadgauge.specs.platforms import PlatformKind


class SeveralPlatforms:
    """Platforms as one, for a plan whose cases name theirs."""

    def __init__(self, platforms: Mapping[PlatformKind, Platform]) -> None:
        self._platforms = dict(platforms)
        self._asked_last: Platform | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """Of each, with its name."""
        return tuple(
            f"{kind}: {note}"
            for kind, platform in self._platforms.items()
            for note in platform.notes
        )

    @property
    def taken_cores(self) -> Mapping[str, TakenCores]:
        """Of each machine, once where two platforms use it."""
        seeing = (each for each in self._platforms.values() if isinstance(each, SeesMachines))
        return {name: taken for each in seeing for name, taken in each.taken_cores.items()}

    def start(self, request: LaunchRequest, progress: TrialProgress) -> Launch:
        """Raises LaunchError, PlatformError and RunFolderError, as that platform does."""
        self._asked_last = self._of(request)
        return self._asked_last.start(request, progress)

    def rank_commands(self, request: LaunchRequest) -> tuple[str, ...]:
        return self._of(request).rank_commands(request)

    def leave(self, *, only_found: bool = False) -> bool:
        """Of those that were not asked last nothing runs but what an earlier life of the tool has
        begun: `close` ends what else they hold."""
        able = [each for each in self._platforms.values() if isinstance(each, RunsWithoutTool)]
        last = self._asked_last
        left = [each.leave(only_found=only_found or each is not last) for each in able]
        return any(left)

    def close(self) -> None:
        """All of them, also where one can't be closed in good order."""
        with ExitStack() as closing:
            for platform in self._platforms.values():
                closing.callback(platform.close)

    def _of(self, request: LaunchRequest) -> Platform:
        assert request.platform is not None, "a plan for several platforms names that of each case"
        return self._platforms[request.platform]
