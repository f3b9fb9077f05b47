"""What does the network between the first two hosts of a launch carry?

Asked once in each life of a launch, before its first trial, while the ranks wait: one byte's way,
one stream, eight streams. At the first trouble nothing more is asked, since the next one would have
the same; what is not known is said, and the launch goes on.
"""

import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from broadgauge.messages.counters import LinkFacts
from broadgauge.messages.found_links import (
    CallOnLink,
    LinkProbe,
    LinkProbed,
    ListenOnLink,
    ListensOnLink,
)
from broadgauge.messages.launch_order import LaunchOrder
from broadgauge.messages.leader import Job
from broadgauge.messages.waiting_limits import waiting_limit_s

ANSWER_LIMIT_S = waiting_limit_s(20.0)
"""For both agents, in one measurement: their children's limit is 12 s."""
ONE_STREAM, MANY_STREAMS, ROUND_TRIP = 1, 8, 0
_WORDS = {
    ROUND_TRIP: "its round trip and the ceilings of one and eight streams are",
    ONE_STREAM: "the ceilings of one and eight streams are",
    MANY_STREAMS: "the ceiling of eight streams is",
}
"""What is unknown from there on."""

Send = Callable[[int, ListenOnLink | CallOnLink], None]
Hear = Callable[[float], Awaitable[tuple[int, ListensOnLink | LinkProbed] | None]]
"""What an agent says of its link next, up to a time of the monotonic clock. None: nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredLink:
    """What is known of a launch's network."""

    facts: LinkFacts | None = None
    notes: tuple[str, ...] = ()


class _Trouble(Exception):  # noqa: N818  says what is so
    """A measurement came to nothing, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """What the two sides of one measurement saw."""

    listener: LinkProbed
    caller: LinkProbed


def ends_of(job: Job) -> tuple[int, int] | None:
    """Which agents are asked: who calls, and who listens? None: there is no network between two."""
    numbers = [each.agent for each in job.orders if _has_network(each.order)]
    return (numbers[0], numbers[1]) if len(numbers) >= 2 else None


def _has_network(order: LaunchOrder) -> bool:
    return any(node.interfaces or node.network is not None for node in order.nodes)


async def measure_link(ends: tuple[int, int], send: Send, hear: Hear) -> MeasuredLink:
    """Have the two agents measure it."""
    found: dict[int, _Answer] = {}
    notes: tuple[str, ...] = ()
    for number, num_streams in enumerate((ROUND_TRIP, ONE_STREAM, MANY_STREAMS)):
        probe = LinkProbe(number=number, key=os.urandom(16).hex(), num_streams=num_streams)
        try:
            found[num_streams] = await _probe(probe, ends, send, hear)
        except _Trouble as trouble:
            notes = (f"{_WORDS[num_streams]} unknown: {trouble}",)
            break
    return MeasuredLink(facts=_facts(found), notes=notes)


def _facts(found: dict[int, _Answer]) -> LinkFacts | None:
    """None: not even one stream was measured."""
    one, many = found.get(ONE_STREAM), found.get(MANY_STREAMS)
    if one is None or one.listener.stream_gbps is None:
        return None
    return LinkFacts(
        ceiling_gbps=one.listener.stream_gbps,
        eight_streams_gbps=None if many is None else many.listener.stream_gbps,
        round_trip_s=found[ROUND_TRIP].caller.round_trip_s,
        congestion_control=one.caller.congestion_control,
    )


async def _probe(probe: LinkProbe, ends: tuple[int, int], send: Send, hear: Hear) -> _Answer:
    """One measurement. Raises _Trouble."""
    calling, listening = ends
    deadline_s = time.monotonic() + ANSWER_LIMIT_S
    send(listening, ListenOnLink(probe=probe))
    answers: dict[int, LinkProbed] = {}
    while len(answers) < len(ends):
        heard = await hear(deadline_s)
        if heard is None:
            raise _Trouble(f"no answer in {ANSWER_LIMIT_S:g} s")
        agent, event = heard
        if event.number != probe.number:
            continue  # too late, of one that was given up
        if isinstance(event, ListensOnLink):
            send(calling, CallOnLink(probe=probe, endpoints=event.endpoints))
        elif event.trouble is not None:
            raise _Trouble(event.trouble)
        else:
            answers[agent] = event
    return _Answer(listener=answers[listening], caller=answers[calling])
