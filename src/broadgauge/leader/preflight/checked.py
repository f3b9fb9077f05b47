"""What did all agents say of themselves and of each other?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from broadgauge.leader.agents import AgentLink
from broadgauge.messages.leader import ClockReading
from broadgauge.messages.preflight import PairResult, PreflightOpened

MOST_SHOWN = 4
MOST_SETS = 4096
"""Of one finding: those of 256 machines would not fit into a message. A launch of all machines has
one of them in any case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """All of it, before it is judged."""

    names: tuple[str, ...]
    """By agent."""
    opened: Mapping[int, PreflightOpened]
    results: Sequence[PairResult] = ()
    clocks: Sequence[ClockReading] = ()
    silent: Mapping[int, str] = field(default_factory=dict)
    """Agents that did not answer, and why."""

    def name(self, agent: int) -> str:
        """Of its machine; with the agent's number where several are called the same."""
        name = self.names[agent]
        return name if self.names.count(name) == 1 else f"{name} (node {agent})"

    def named(self, agents: Sequence[int]) -> str:
        """`node-a, node-b and 5 more`."""
        shown = ", ".join(map(self.name, agents[:MOST_SHOWN]))
        more = len(agents) - MOST_SHOWN
        return shown + (f" and {more} more" if more > 0 else "")


def names_of(links: Sequence[AgentLink | None]) -> tuple[str, ...]:
    """A pod's node, else what the machine calls itself, by agent."""
    return tuple(
        f"node {number}" if link is None else link.hello.place.get("node") or link.hello.hostname
        for number, link in enumerate(links)
    )
