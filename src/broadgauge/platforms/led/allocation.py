"""What must be known of the machines of a run to lead cases on them? Hosts and pods differ here."""

from collections.abc import Callable, Iterable
from typing import Protocol

from broadgauge.messages.leader import TakeJobs
from broadgauge.platforms.led.handle import LeaderHandle
from broadgauge.platforms.led.launch import ReportedLife
from broadgauge.platforms.led.orders import Seats
from broadgauge.specs.case import Case
from broadgauge.specs.launching import LaunchRequest
from broadgauge.specs.records.record import Environment

Say = Callable[[str], None]


class Allocation(Protocol):
    """The machines of a run: what differs between hosts and pods."""

    @property
    def notes(self) -> Iterable[str]:
        """What the user should know of them."""
        ...

    def tell_to(self, say: Say) -> None:
        """Who takes what the user should know, at any time and from any thread."""
        ...

    def find(self) -> LeaderHandle | None:
        """The leader that the run folder knows of, perhaps of an earlier life of the tool."""
        ...

    def start(self, first: TakeJobs, show: Say) -> LeaderHandle:
        """A leader, and its agents, with nothing left where that fails.

        It may have this order at once, else it is given to it. `show`: takes what is waited for.
        Raises InputError, PlatformError, RunFolderError.
        """
        ...

    def wait_for_found(self, show: Say) -> None:
        """The machines of the leader that `find` found may still be waited for.

        Raises PlatformError where they don't come.
        """
        ...

    def forget(self) -> None:
        """The leader is gone."""
        ...

    def why_over(self) -> str | None:
        """Who ended the leader for good, a person or a limit of theirs? Another is not wanted then.
        None: nobody, as far as is known."""
        ...

    def lose(self) -> None:
        """The leader was lost: nothing of it may go on beside its successor, and it is forgotten.

        Raises PlatformError where that can't be had.
        """
        ...

    def seats_of(self, case: Case) -> Seats:
        """Where the nodes of this case are. Raises LaunchError."""
        ...

    def agent_name(self, number: int) -> str:
        """Of an agent's machine, for people."""
        ...

    def why_lost(self, number: int) -> str | None:
        """An agent, in the words of whoever runs its machine; None: nobody knows."""
        ...

    def notes_on(self, case: Case) -> Iterable[str]:
        """What the user should know where a launch of this case runs."""
        ...

    def environment(self, case: Case, life: ReportedLife) -> Environment:
        """What the figures of a launch depend on besides the experiment."""
        ...

    def rank_commands(self, request: LaunchRequest) -> tuple[str, ...]:
        """The environment and command of each rank, as a shell there would take them."""
        ...
