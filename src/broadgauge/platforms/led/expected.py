"""Which launches will a led run be asked for, and what of that does its leader not know yet?"""

from collections.abc import Sequence

from broadgauge.platforms.led.orders import life_number
from broadgauge.specs.launching import LaunchRequest


class Expected:
    """The launches that are left, as the engine said last."""

    def __init__(self) -> None:
        self.has_grown = False
        """More is expected than a leader was given."""
        self._requests: tuple[LaunchRequest, ...] = ()
        self._places: dict[str, int] = {}
        """Of each launch among them, by its name."""
        self._unwanted: dict[str, None] = {}

    def expect(self, requests: Sequence[LaunchRequest]) -> None:
        """These instead of those before. Where they are fewer a leader may have measured some of
        those that stay: it is told what it need not run, and given nothing again."""
        before, now = _trials_of(self._requests), _trials_of(requests)
        self.has_grown = bool(before) and not now.keys() <= before.keys()
        self._unwanted |= {trial_id: None for trial_id in before if trial_id not in now}
        self._requests = tuple(requests)
        self._places = {_planned(request): place for place, request in enumerate(requests)}

    def comes_to(self, request: LaunchRequest) -> bool:
        """Does a leader come to it by itself? Also to another life of a launch that it has."""
        return _planned(request) in self._places

    def is_after(self, life_id: str, request: LaunchRequest) -> bool:
        """Is this a life of a launch that is asked for later?"""
        place = self._places.get(life_number(life_id)[0])
        asked = self._places.get(_planned(request))
        return place is not None and asked is not None and place > asked

    def from_on(self, request: LaunchRequest) -> tuple[LaunchRequest, ...]:
        """What a leader is given: this launch and those after it, where they were told; else this
        one alone."""
        place = self._places.get(_planned(request))
        return (request, *(() if place is None else self._requests[place + 1 :]))

    def were_given(self) -> None:
        """A leader has all that is left, or is about to."""
        self.has_grown, self._unwanted = False, {}

    def take_unwanted(self) -> tuple[str, ...]:
        """Trials that the leader has, may still run, and need not; each once."""
        unwanted, self._unwanted = self._unwanted, {}
        return tuple(unwanted)


def _planned(request: LaunchRequest) -> str:
    return life_number(request.launch_id)[0]


def _trials_of(requests: Sequence[LaunchRequest]) -> dict[str, None]:
    return {trial.trial_id: None for request in requests for trial in request.trials}
