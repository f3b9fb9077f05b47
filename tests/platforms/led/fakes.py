"""A leader, and the machines that it leads, that do what a test says."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from broadgauge.messages.codec import encode
from broadgauge.messages.leader import Job, LeaderHello, LeaderOrder, LifeEvent, Spooled, TakeJobs
from broadgauge.platforms.led.handle import LinkLost
from broadgauge.platforms.led.launch import ReportedLife
from broadgauge.platforms.led.orders import Seat, Seats
from broadgauge.platforms.led.platform import Say
from broadgauge.specs.case import Case
from broadgauge.specs.errors import PlatformError
from broadgauge.specs.launching import LaunchRequest
from broadgauge.specs.record import Environment


@dataclass(slots=True)
class FakeLink:
    """Says these events, numbered, of the jobs that it was given last; then it breaks."""

    hello: LeaderHello | None
    events: deque[LifeEvent]
    loss: LinkLost
    refused: int = 0
    """Orders that don't come through at first."""
    last: int = -1
    last_words: str | None = None
    told: list[LeaderOrder] = field(default_factory=list)

    def send(self, order: LeaderOrder) -> None:
        if self.refused:
            self.refused -= 1
            raise self.loss
        self.told.append(order)

    def receive(self, timeout_s: float) -> Spooled | None:
        del timeout_s
        if not self.events:
            raise self.loss
        given = [each.generation for each in self.told if isinstance(each, TakeJobs)]
        assert self.hello is not None
        self.last += 1
        return Spooled(
            number=self.last,
            generation=given[-1] if given else self.hello.generation,
            event=encode(self.events.popleft()),
        )


def fake_link(
    *events: LifeEvent, generation: int = 0, leader: str = "", loss: LinkLost | None = None
) -> FakeLink:
    hello = LeaderHello(version="", pid=1, generation=generation, next_number=0, leader=leader)
    return FakeLink(hello, deque(events), loss or LinkLost("the way broke"))


@dataclass(slots=True)
class FakeAttached:
    link: FakeLink
    is_open: bool = True

    def close(self) -> None:
        self.is_open = False


@dataclass(slots=True)
class FakeLeader:
    """Each attachment is the next of these; what is an error is raised."""

    attachments: deque[FakeLink | Exception]
    name: str = "leader 1"
    is_stopped: bool = False

    def attach(self, after: int) -> FakeAttached:
        found = self.attachments.popleft()
        if isinstance(found, Exception):
            raise found
        found.last = after
        return FakeAttached(found)

    def stop(self) -> bool:
        self.is_stopped = True
        return True


def fake_leader(*attachments: FakeLink | Exception) -> FakeLeader:
    return FakeLeader(deque(attachments))


@dataclass(slots=True)
class FakeMachines:
    """An allocation whose leaders are these, one after the other."""

    found: FakeLeader | None
    started: deque[FakeLeader | PlatformError]
    lost: PlatformError | None = None
    done: list[str] = field(default_factory=list)
    """What was asked of it, in order."""

    notes: Iterable[str] = ()

    def find(self) -> FakeLeader | None:
        return self.found

    def start(self, jobs: tuple[Job, ...], say: Say, show: Say) -> FakeLeader:
        del say
        self.done.append(f"start with {len(jobs)}")
        show("2 pods waiting for a node")
        found = self.started.popleft()
        if isinstance(found, PlatformError):
            raise found
        self.found = found
        return found

    def wait_for_found(self, show: Say) -> None:
        self.done.append("wait")
        show("1 pod starting")

    def forget(self) -> None:
        self.done.append("forget")
        self.found = None

    def lose(self) -> None:
        self.done.append("lose")
        if self.lost is not None:
            raise self.lost
        self.found = None

    def seats_of(self, case: Case) -> Seats:
        seat = Seat(num_cores=1, interfaces=("eth0",))
        return Seats(seats=(seat,) * case.nodes, master_address="10.0.0.1")

    def agent_name(self, number: int) -> str:
        return f"node {number}"

    def why_lost(self, number: int) -> str | None:
        return f"its pod {number} was evicted"

    def notes_on(self, case: Case) -> Iterable[str]:
        del case
        return ()

    def environment(self, case: Case, life: ReportedLife) -> Environment:
        raise NotImplementedError

    def rank_commands(self, request: LaunchRequest) -> tuple[str, ...]:
        raise NotImplementedError
