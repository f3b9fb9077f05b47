"""How do cases run of which each needs machines of its own? One allocation after the other."""

from collections.abc import Callable, Sequence

from broadgauge.platforms.led.launch import FollowedLaunch
from broadgauge.platforms.led.platform import LedPlatform
from broadgauge.specs.case import Case
from broadgauge.specs.launching import LaunchRequest, TrialProgress


class OnePerCase:
    """The allocation of the case that is asked for; the one before is given back first.

    A plan for it runs all launches of a case in a row (engine/schedule.py, `schedule_apart`).
    """

    def __init__(self, cases: Sequence[Case], make: Callable[[Case], LedPlatform]) -> None:
        """`make`: the platform of one case. Nothing is asked of a cluster yet."""
        self._make = make
        self._first = cases[0]
        self._case: str | None = None
        """Whose allocation it is."""
        self._platform: LedPlatform | None = None
        self._expected: tuple[LaunchRequest, ...] = ()
        self._notes: dict[str, None] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """Of all allocations so far."""
        if self._platform is not None:
            self._notes |= dict.fromkeys(self._platform.notes)
        return tuple(self._notes)

    def expect(self, requests: Sequence[LaunchRequest]) -> None:
        """Each allocation is told of those of its own case."""
        before = self._of_case(self._case)
        self._expected = tuple(requests)
        own = self._of_case(self._case)
        if self._platform is not None and own != before:
            self._platform.expect(own)

    def start(self, request: LaunchRequest, progress: TrialProgress) -> FollowedLaunch:
        """Raises LaunchError, PlatformError, RunFolderError."""
        return self._of(request.cases[0]).start(request, progress)

    def rank_commands(self, request: LaunchRequest) -> tuple[str, ...]:
        """The environment and command of each rank, as a shell there would take them."""
        return self._make(request.cases[0]).rank_commands(request)

    def leave(self) -> None:
        """Let go: what the allocation that runs has left goes on there."""
        if self._platform is not None:
            self._platform.leave()

    def close(self) -> None:
        """End what runs there, and leave nothing; safe to call twice.

        Also what an earlier life of the tool has left, of whatever case.
        """
        platform = self._platform or self._make(self._first)
        platform.close()

    def _of(self, case: Case) -> LedPlatform:
        if self._platform is None or case.key != self._case:
            if self._platform is not None:
                self._notes |= dict.fromkeys(self._platform.notes)
                self._platform.close()
            self._case, self._platform = case.key, self._make(case)
            self._platform.expect(self._of_case(case.key))
        return self._platform

    def _of_case(self, key: str | None) -> tuple[LaunchRequest, ...]:
        return tuple(each for each in self._expected if each.cases[0].key == key)
