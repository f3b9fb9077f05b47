"""How far are the agents' clocks apart, and how sure is that?

The shortest of some round trips bounds it: the answer was given between question and hearing.
Source: NTP's clock filter, RFC 5905, section 10 (the sample with the least delay), in its plainest
form.
"""

import time
from collections.abc import Iterable

from broadgauge.leader.agents import Agents
from broadgauge.messages.leader import ClockReading
from broadgauge.messages.waiting_limits import waiting_limit_s

NUM_ROUND_TRIPS = 5
ANSWER_LIMIT_S = waiting_limit_s(5.0)


async def compare_clocks(agents: Agents, numbers: Iterable[int]) -> tuple[ClockReading, ...]:
    """One reading an agent; one that did not answer has none."""
    found = []
    for agent in numbers:
        readings = [await _round_trip(agents, agent) for _ in range(NUM_ROUND_TRIPS)]
        known = [reading for reading in readings if reading is not None]
        if known:
            found.append(min(known, key=lambda reading: reading.uncertainty_s))
    return tuple(found)


async def _round_trip(agents: Agents, agent: int) -> ClockReading | None:
    asked_s, asked_unix_s = time.monotonic(), time.time()
    told = await agents.ask_clock(agent, ANSWER_LIMIT_S)
    half_s = (time.monotonic() - asked_s) / 2
    if told is None:
        return None
    return ClockReading(
        agent=agent, offset_s=told.unix_s - (asked_unix_s + half_s), uncertainty_s=half_s
    )
