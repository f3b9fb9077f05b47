"""What can this host carry over an emulated link? Measured before the first trial on it.

A ceiling is of a link's MTU and offload, with the launch's NICs and overlay: each distinct one is
measured once in the life of a launch, unshaped, and so is the round trip of each link as shaped.
Eight streams are measured only where one of them does not carry twice a line rate asked for.
"""

from collections.abc import Callable, Generator

from broadgauge.agent.emulated.ceiling import measure_stream
from broadgauge.agent.emulated.nodes import EmulatedCluster
from broadgauge.agent.emulated.round_trip import measure_round_trip_time_s
from broadgauge.agent.emulated.shaping import LinkPlan, burst_bytes, unshaped
from broadgauge.agent.supervisor.side_process import SideAnswer, SideProcess
from broadgauge.messages.counters import LinkFacts
from broadgauge.messages.payload import VXLAN_HEADER_BYTES, payload_rate_gbps
from broadgauge.messages.waiting_limits import waiting_limit_s

Measuring = Generator[SideProcess, SideAnswer, LinkFacts | None]
"""Yields each child at work, is sent its answer, and returns what came of all."""

MANY_STREAMS = 8
"""As many as a node's library may well open: what they reach together, one stream may not."""
ENOUGH_OVER_RATE = 2.0
"""As CEILING_OVER_RATE of advise/limits.py; a test holds that they are equal."""
_STREAM_S = 0.1
_SECOND_TRY_S = 0.5
_WARM_UP_S = 0.05
_WARM_UP_OF_A_STREAM_S = 0.01
"""Both sides of each are forked before the time begins."""
_STREAM_LIMIT_S = waiting_limit_s(20.0)
ROUND_TRIP_LIMIT_S = waiting_limit_s(10.0)
"""Five times the probe's own two seconds: a link of no delay may lose half of the packets."""
_DELAYS_OF_A_ROUND_TRIP = 4
"""And two round trips of a link that delays, each of two delays."""


class LinkMeasurements:
    """What was measured on one cluster's links so far."""

    def __init__(self, cluster: EmulatedCluster, *, has_overlay: bool) -> None:
        self.notes: tuple[str, ...] = ()
        self._cluster = cluster
        self._overlay_bytes = VXLAN_HEADER_BYTES if has_overlay else 0
        self._one_gbps: dict[LinkPlan, float | None] = {}
        self._many_gbps: dict[LinkPlan, float | None] = {}
        """What one stream and many carry over bare links, of those that were measured."""
        self._facts: dict[LinkPlan, LinkFacts | None] = {}

    def shape_and_measure(self, plan: LinkPlan) -> Measuring:
        """Give every link this plan; what is known of it, once it is."""
        yield from self._measure_ceilings(plan)
        self._cluster.shape(plan)
        if plan not in self._facts:
            self._facts[plan] = yield from self._measure_facts(plan)
        return self._facts[plan]

    def _measure_ceilings(self, plan: LinkPlan) -> Generator[SideProcess, SideAnswer, None]:
        """What is still to be known of the link with nothing held back."""
        bare = unshaped(plan)
        if bare not in self._one_gbps:
            self._cluster.shape(bare)
            self._one_gbps[bare] = yield from self._stream_gbps(plan, 1)
        one_gbps = self._one_gbps[bare]
        if one_gbps is None or bare in self._many_gbps or _is_enough(one_gbps, plan):
            return
        self._cluster.shape(bare)
        self._many_gbps[bare] = yield from self._stream_gbps(plan, MANY_STREAMS)

    def _measure_facts(self, plan: LinkPlan) -> Measuring:
        bare = unshaped(plan)
        one_gbps = self._one_gbps[bare]
        if one_gbps is None:
            return None
        is_enough = _is_enough(one_gbps, plan)
        round_trip_s = yield from self._round_trip_s(plan)
        rate_gbps = plan.slower_rate_gbps
        return LinkFacts(
            ceiling_gbps=one_gbps,
            eight_streams_gbps=None if is_enough else self._many_gbps[bare],
            is_one_stream_enough=is_enough,
            round_trip_s=round_trip_s,
            burst_bytes=None if rate_gbps is None else burst_bytes(rate_gbps),
            congestion_control=self._cluster.congestion_control,
        )

    def _stream_gbps(
        self, plan: LinkPlan, num_streams: int
    ) -> Generator[SideProcess, SideAnswer, float | None]:
        """What plain streams carry on the wire, headers counted; None: it failed, with a note.

        On busy cores a stream may not have its turn in so short a time: then once more, for longer.
        """
        answer = yield SideProcess.start(self._measuring(num_streams, _STREAM_S), _STREAM_LIMIT_S)
        if answer.trouble is not None:
            answer = yield SideProcess.start(
                self._measuring(num_streams, _SECOND_TRY_S), _STREAM_LIMIT_S
            )
        if answer.trouble is not None:
            self._note(f"the ceiling of {_streams(num_streams)} is unknown: {answer.trouble}")
            return None
        return answer.figures["payload_gbps"] / payload_rate_gbps(
            1.0, plan.mtu, self._overlay_bytes
        )

    def _measuring(self, num_streams: int, duration_s: float) -> Callable[[], dict[str, float]]:
        """What a child does."""
        sender, receiver = self._cluster.nodes[:2]

        def measure() -> dict[str, float]:
            stream = measure_stream(
                sender,
                receiver,
                duration_s=duration_s,
                warm_up_s=_WARM_UP_S + _WARM_UP_OF_A_STREAM_S * (num_streams - 1),
                num_streams=num_streams,
            )
            return {"payload_gbps": stream.payload_gbps}

        return measure

    def _round_trip_s(self, plan: LinkPlan) -> Generator[SideProcess, SideAnswer, float | None]:
        sender, receiver = self._cluster.nodes[:2]

        def measure() -> dict[str, float]:
            return {"round_trip_s": measure_round_trip_time_s(sender, receiver)}

        longest_s = plan.delay_s + plan.jitter_s
        limit_s = ROUND_TRIP_LIMIT_S + _DELAYS_OF_A_ROUND_TRIP * longest_s
        answer = yield SideProcess.start(measure, limit_s)
        if answer.trouble is not None:
            self._note(f"the link's round trip is unknown: {answer.trouble}")
        return answer.figures.get("round_trip_s")

    def _note(self, note: str) -> None:
        self.notes += (note,)


def _is_enough(one_gbps: float, plan: LinkPlan) -> bool:
    """Does one stream carry so much that no verdict on this link can rest on eight?"""
    rate_gbps = plan.slower_rate_gbps
    return rate_gbps is not None and one_gbps >= ENOUGH_OVER_RATE * rate_gbps


def _streams(number: int) -> str:
    return "one stream over the link" if number == 1 else f"{number} streams over the link"
