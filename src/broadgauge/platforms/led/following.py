"""How does the tool follow a leader that runs by itself, and what when the way to it breaks?"""

import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from broadgauge.messages.agent import EVENT
from broadgauge.messages.agent import Event as AgentEvent
from broadgauge.messages.codec import DecodeError
from broadgauge.messages.leader import (
    LIFE_EVENT,
    AgentLost,
    Job,
    JobsDone,
    LeaderHello,
    LeaderOrder,
    LifeBegins,
    LifeEnds,
    LifeEvent,
    SkipTrials,
    Stored,
    TakeJobs,
    TrialBegins,
    TrialEnds,
)
from broadgauge.messages.preflight import PreflightDone, PreflightMode
from broadgauge.messages.waiting_limits import waiting_limit_s
from broadgauge.platforms.led.handle import (
    AttachedLink,
    LeaderHandle,
    LinkLost,
    NoLeader,
    NothingMore,
)
from broadgauge.specs.errors import PlatformError, UncollectedError

AGAIN_AFTER_S = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0)
FIRST_ATTACH_LIMIT_S = waiting_limit_s(60.0)
"""At first: the host has answered a moment ago."""
RECONNECT_LIMIT_S = waiting_limit_s(900.0)
"""A laptop that changes its network comes back sooner; the leader waits a day for another tool."""

Followed = AgentEvent | LifeEvent
_LIFE_TYPES = frozenset(
    form.__dataclass_fields__["type"].default
    for form in (
        LifeBegins,
        TrialBegins,
        TrialEnds,
        AgentLost,
        LifeEnds,
        JobsDone,
        PreflightDone,
    )
)


class LeaderGone(Exception):  # noqa: N818  says what is so, and is always caught
    """The leader has ended."""


@dataclass(slots=True)
class FollowedLeader:
    """One leader, as the tool follows it."""

    leader: LeaderHandle
    attached: AttachedLink
    say: Callable[[str], None]
    """Tells the user of what interrupts the following."""
    generation: int = -1
    _stored: int = field(default=-1)
    _given: TakeJobs | None = None
    _held: deque[tuple[int, Followed]] = field(default_factory=deque)
    """With their numbers: received, and for whoever asks next."""
    _received: tuple[int, Followed] | None = None
    """The last."""
    _open_life: int | None = None
    """Number of the event by which a life began whose end was not received."""

    @classmethod
    def of(cls, leader: LeaderHandle, after: int, say: Callable[[str], None]) -> "FollowedLeader":
        """Raises LeaderGone; UncollectedError where nobody can tell whether it lives."""
        attached = _attach_until(leader, after, say, FIRST_ATTACH_LIMIT_S)
        return cls(leader, attached, say, generation=_hello_of(attached).generation)

    def give(self, jobs: tuple[Job, ...], preflight: PreflightMode = "no") -> None:
        """These instead of all that it has. Raises LeaderGone."""
        self.generation += 1
        self._held.clear()
        self._given = TakeJobs(generation=self.generation, jobs=jobs, preflight=preflight)
        self._send(self._given)

    def skip(self, trial_ids: Iterable[str]) -> None:
        """These are not wanted any more; what it measured of others counts.

        Where it can't be told now they run in vain, and nothing else is lost.
        """
        with suppress(LinkLost, PlatformError):
            self.attached.link.send(SkipTrials(trial_ids=tuple(trial_ids)))

    def stored(self) -> None:
        """All that was received is in the run folder. Of a life that goes on all is kept: without
        its beginning nobody could make anything of the rest. Raises LeaderGone."""
        needed = [number for number, _ in list(self._held)[:1]]
        needed += [] if self._open_life is None else [self._open_life]
        last = min(needed, default=self.attached.link.last + 1) - 1
        if last > self._stored:
            self._stored = last
            self._send(Stored(number=self._stored))

    def hold(self) -> None:
        """What was received last belongs to what is asked for next."""
        assert self._received is not None, "nothing was received"
        self._held.appendleft(self._received)

    def look_ahead(self, is_it: Callable[[Followed], bool], idle_s: float) -> Followed | None:
        """The first event that is so among those to come; None: none came for so long before it.
        All are received again. Raises LeaderGone."""
        seen: list[tuple[int, Followed]] = []
        try:
            while (event := self.receive(idle_s)) is not None:
                assert self._received is not None
                seen.append(self._received)
                if is_it(event):
                    return event
            return None
        finally:
            self._held.extendleft(reversed(seen))

    def receive(self, timeout_s: float) -> Followed | None:
        """The next event of the jobs given last; None: none in time. Raises LeaderGone.

        Also of later ones: an earlier life of the tool was killed before it knew that they came.
        """
        if self._held:
            return self._take(*self._held.popleft())
        deadline_s = time.monotonic() + timeout_s
        while True:
            try:
                spooled = self.attached.link.receive(deadline_s - time.monotonic())
            except LinkLost as loss:
                self._attach_again(loss)
                if self._missed is not None:
                    self._send(self._missed)
                continue
            if spooled is None:
                return None
            if spooled.generation >= self.generation:
                self.generation = spooled.generation
                return self._take(spooled.number, _event_of(spooled.event))

    def _take(self, number: int, event: Followed) -> Followed:
        if isinstance(event, LifeBegins):
            self._open_life = number
        elif isinstance(event, LifeEnds):
            self._open_life = None
        self._received = (number, event)
        return event

    def close(self) -> None:
        """Let go of it; it lives on."""
        self.attached.close()

    def _send(self, order: LeaderOrder) -> None:
        """Try for so long. Raises LeaderGone; UncollectedError where it is heard and not told."""
        deadline_s = time.monotonic() + RECONNECT_LIMIT_S
        orders = [order]
        for attempt in range(10_000):
            try:
                for each in orders:
                    self.attached.link.send(each)
                return
            except LinkLost as loss:
                if time.monotonic() > deadline_s:
                    raise _unheard(self.leader, loss) from loss
                if attempt:  # attaching does not help
                    time.sleep(AGAIN_AFTER_S[min(attempt - 1, len(AGAIN_AFTER_S) - 1)])
                self._attach_again(loss)
            missed = self._missed
            if missed is None and order is self._given:
                return
            orders = [order] if missed is None or missed is order else [missed, order]
        raise AssertionError("the limit comes first")

    @property
    def _missed(self) -> TakeJobs | None:
        """The jobs that a connection took along as it broke."""
        given = self._given
        is_there = given is None or _hello_of(self.attached).generation >= given.generation
        return None if is_there else given

    def _attach_again(self, loss: LinkLost) -> None:
        """Raises LeaderGone where there is none, UncollectedError where its host does not answer.

        It may live on then: another beside it would disturb what it measures.
        """
        heard = _hello_of(self.attached).leader
        last, words = self.attached.link.last, self.attached.link.last_words
        self.attached.close()
        if isinstance(loss, NothingMore):
            raise LeaderGone(f"{self.leader.name}: {loss}") from loss
        if words is not None:
            self.leader.stop()  # until it and its agents have ended: two would disturb each other
            raise LeaderGone(f"{self.leader.name}: {words}") from loss
        self.say(f"{self.leader.name}: {loss}; trying to hear it again")
        self.attached = _attach_until(self.leader, last, self.say, RECONNECT_LIMIT_S)
        found = _hello_of(self.attached).leader
        if heard and found and heard != found:
            self.attached.close()
            raise LeaderGone(f"{self.leader.name}: another leader began in its place") from loss
        self.say(f"{self.leader.name} answers again")


def _attach_until(
    leader: LeaderHandle, after: int, say: Callable[[str], None], limit_s: float
) -> AttachedLink:
    """Try for so long. Raises LeaderGone; UncollectedError where nobody knows if it lives."""
    deadline_s = time.monotonic() + limit_s
    for attempt in range(10_000):
        try:
            return leader.attach(after)
        except NoLeader as error:
            raise LeaderGone(str(error)) from error
        except LinkLost as error:
            if time.monotonic() > deadline_s:
                raise _unheard(leader, error) from error
            say(f"{leader.name} does not answer: {error}; trying again")
        time.sleep(AGAIN_AFTER_S[min(attempt, len(AGAIN_AFTER_S) - 1)])
    raise AssertionError("the limit comes first")


def _hello_of(attached: AttachedLink) -> LeaderHello:
    assert attached.link.hello is not None, "attach waits for it"
    return attached.link.hello


def _unheard(leader: LeaderHandle, loss: LinkLost) -> UncollectedError:
    return UncollectedError(
        f"{leader.name}, which leads the run, does not answer: {loss}",
        hint="the run may go on there: `broadgauge run --resume` collects it later",
    )


def _event_of(message: dict[str, object]) -> Followed:
    """Raises LeaderGone for what no leader says."""
    try:
        if message.get("type") in _LIFE_TYPES:
            return LIFE_EVENT(message)
        return EVENT(message)
    except DecodeError as error:
        raise LeaderGone(f"the leader said what no leader says: {error}") from error


def logs_of(folder: Path, life_id: str, num_ranks: int) -> tuple[Path, ...]:
    """Where the ranks' logs of a life are, once they have come."""
    return tuple(folder / f"{life_id}.rank{rank}.log" for rank in range(num_ranks))
