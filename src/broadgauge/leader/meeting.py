"""When have all agents reached a mark, read their counters, and told them? No I/O.

agents: ranks_wait ──▶ all: read ──▶ counters_read ──▶ all: release ──▶ marked ──▶ one `marked`
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from broadgauge.messages.agent import CountersRead, Marked, RanksWait, ReadCounters, Release


@dataclass(slots=True)
class Meeting:
    """The marks of one trial, among the agents of a launch."""

    agents: frozenset[int]
    _waiting: dict[int, str] = field(default_factory=dict)
    _read: dict[str, set[int]] = field(default_factory=dict)
    _marked: dict[str, dict[int, Marked]] = field(default_factory=dict)

    @classmethod
    def of(cls, agents: Iterable[int]) -> "Meeting":
        return cls(agents=frozenset(agents))

    def hear(
        self, agent: int, event: RanksWait | CountersRead | Marked
    ) -> ReadCounters | Release | Marked | None:
        """What follows: an order for all agents, or the mark of all. None: others are missing."""
        match event:
            case RanksWait():
                return self._wait(agent, event.label)
            case CountersRead():
                read = self._read.setdefault(event.label, set())
                read.add(agent)
                return Release(label=event.label) if read == self.agents else None
            case Marked():
                told = self._marked.setdefault(event.label, {})
                told[agent] = event
                return _of_all(told) if told.keys() == self.agents else None

    def _wait(self, agent: int, label: str) -> ReadCounters | None:
        self._waiting[agent] = label
        if self._waiting.keys() != self.agents or set(self._waiting.values()) != {label}:
            return None
        self._waiting.clear()
        return ReadCounters(label=label)

    @property
    def waiting(self) -> dict[int, str]:
        """Which agents' ranks wait, and at which mark?"""
        return dict(self._waiting)


def _of_all(told: dict[int, Marked]) -> Marked:
    """As an agent of all nodes would say it: on the clock of the first, whichever mark it is."""
    first = told[min(told)]
    readings = (reading for marked in told.values() for reading in marked.nodes)
    return Marked(
        label=first.label,
        time_s=first.time_s,
        nodes=tuple(sorted(readings, key=lambda reading: reading.node)),
    )
