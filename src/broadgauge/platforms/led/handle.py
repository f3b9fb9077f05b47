"""What must be known of a leader to follow it: how it is reached, and how it is ended?"""

from typing import Protocol

from broadgauge.messages.leader import LeaderHello, LeaderOrder, Spooled


class NoLeader(Exception):  # noqa: N818  says what is so, and is always caught
    """The place answers, and there is no leader of this run."""


class LinkLost(Exception):  # noqa: N818  says what is so, and is always caught
    """The stream from the leader ended, or nothing came for too long; the leader may live on."""


class NothingMore(LinkLost):
    """The leader has ended, and all that it has left was received."""


class LeaderStream(Protocol):
    """A leader that is heard and told."""

    hello: LeaderHello | None
    """The last that it said; None: none came yet."""
    last: int
    """The last event that was received."""
    last_words: str | None
    """Why the leader ends; None: it has not said that it does."""

    def send(self, order: LeaderOrder) -> None:
        """Raises LinkLost."""
        ...

    def receive(self, timeout_s: float) -> Spooled | None:
        """The next event; None: none came in time. Raises LinkLost."""
        ...


class AttachedLink(Protocol):
    """A link, and what keeps it."""

    @property
    def link(self) -> LeaderStream: ...

    def close(self) -> None:
        """Let go; the leader lives on."""
        ...


class LeaderHandle(Protocol):
    """One leader, which a tool may come back to."""

    @property
    def name(self) -> str:
        """For people: its host, its pod."""
        ...

    def attach(self, after: int) -> AttachedLink:
        """Hear it from its event after this one. Raises NoLeader; LinkLost where nothing answers,
        now or in time."""
        ...

    def stop(self) -> bool:
        """Have it and its agents end and leave nothing; False: nobody knows whether it did."""
        ...
