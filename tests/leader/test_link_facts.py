"""What does a leader learn of the network between two hosts, and what when one of them can't?"""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.leader.allocations import Allocation, job, run_jobs

from broadgauge.leader import link_facts
from broadgauge.leader.link_facts import MeasuredLink, ends_of, measure_link
from broadgauge.messages.agent import EVENT, ORDER
from broadgauge.messages.codec import encode
from broadgauge.messages.found_links import (
    CallOnLink,
    Endpoint,
    LinkProbe,
    LinkProbed,
    ListenOnLink,
    ListensOnLink,
)
from broadgauge.messages.frames import FrameReader, FrameWriter

WHERE = (Endpoint(address="10.0.0.2", port=4711),)
CALLER, LISTENER = 0, 1
SIDES = ("listens", "listener", "caller")
"""Who may fail: before it listens, while it listens, or calling."""


@dataclass
class Ends:
    """Two agents in one process; `fault`: the measurement that fails, by its place, and who."""

    fault: tuple[int, str] | None = None
    is_silent: bool = False
    """It says nothing instead of what is wrong."""
    orders: list[tuple[int, str, int]] = field(default_factory=list)
    _said: list[tuple[int, ListensOnLink | LinkProbed]] = field(default_factory=list)

    def send(self, agent: int, order: ListenOnLink | CallOnLink) -> None:
        number = order.probe.number
        self.orders.append((agent, order.type, order.probe.num_streams))
        if isinstance(order, CallOnLink):
            assert (agent, order.endpoints) == (CALLER, WHERE)
            self._answer(agent, "caller", LinkProbed(number=number, round_trip_s=0.001))
            return
        assert agent == LISTENER
        if self.fault == (number, "listens"):
            self._fail(agent, number)
            return
        self._said.append((agent, ListensOnLink(number=number - 1, endpoints=())))  # an old one's
        self._said.append((agent, ListensOnLink(number=number, endpoints=WHERE)))
        found = LinkProbed(number=number, stream_gbps=10.0 * (order.probe.num_streams or 1))
        self._answer(agent, "listener", found)

    def _answer(self, agent: int, side: str, answer: LinkProbed) -> None:
        if self.fault == (answer.number, side):
            self._fail(agent, answer.number)
        else:
            self._said.append((agent, answer))

    def _fail(self, agent: int, number: int) -> None:
        if not self.is_silent:
            self._said.append((agent, LinkProbed(number=number, trouble="planted")))

    async def hear(self, deadline_s: float) -> tuple[int, ListensOnLink | LinkProbed] | None:
        return self._said.pop(0) if self._said else None

    def measure(self) -> MeasuredLink:
        return asyncio.run(measure_link((CALLER, LISTENER), self.send, self.hear))


def test_one_byte_one_stream_and_eight_are_measured_in_turn() -> None:
    ends = Ends()
    found = ends.measure()
    assert found.facts is not None
    assert (found.facts.round_trip_s, found.notes) == (0.001, ())
    assert (found.facts.ceiling_gbps, found.facts.eight_streams_gbps) == (10.0, 80.0)
    assert not found.facts.is_one_stream_enough
    assert [(kind, streams) for _, kind, streams in ends.orders] == [
        (kind, streams) for streams in (0, 1, 8) for kind in ("listen_on_link", "call_on_link")
    ]


@given(st.integers(0, 2), st.sampled_from(SIDES), st.booleans())
def test_what_fails_is_unknown_with_a_note_and_what_was_found_stays(
    number: int, side: str, is_silent: bool
) -> None:
    ends = Ends(fault=(number, side), is_silent=is_silent)
    found = ends.measure()
    (note,) = found.notes
    assert "unknown" in note
    assert (f"no answer in {link_facts.ANSWER_LIMIT_S:g} s" if is_silent else "planted") in note
    assert {streams for _, _, streams in ends.orders} == {0, 1, 8} - {0: {1, 8}, 1: {8}, 2: set()}[
        number
    ]
    assert (found.facts is not None) == (number == 2)
    if found.facts is not None:
        assert (found.facts.ceiling_gbps, found.facts.eight_streams_gbps) == (10.0, None)
        assert not found.facts.is_one_stream_enough  # unknown, and not: not needed


def test_each_measurement_has_a_key_of_its_own() -> None:
    keys = []

    class Noting(Ends):
        def send(self, agent: int, order: ListenOnLink | CallOnLink) -> None:
            keys.append(order.probe.key)
            super().send(agent, order)

    Noting().measure()
    assert len(keys) == 6
    assert len(set(keys)) == 3
    assert repr(LinkProbe(number=0, key=keys[0], num_streams=1)).count(keys[0]) == 0


@pytest.mark.parametrize(
    "message",
    [
        ListenOnLink(probe=LinkProbe(number=1, key="0" * 32, num_streams=8)),
        CallOnLink(probe=LinkProbe(number=1, key="0" * 32, num_streams=8), endpoints=WHERE * 64),
        ListensOnLink(number=1, endpoints=WHERE * 64),
        LinkProbed(number=1, trouble="no route to host"),
        LinkProbed(number=1, stream_gbps=1.5, congestion_control="bbr"),
    ],
)
def test_messages_fit_a_frame_and_take_keys_of_later_versions(message: Any) -> None:
    line = FrameWriter("one").write(message)
    assert len(line) <= 8192
    assert line.count(b"\n") == 1
    (received,) = FrameReader().feed(line)[0]
    told = received.message
    told["of_a_later_version"] = {"x": 1}
    for part in ("probe", "endpoints"):
        for inner in [told[part]] if part == "probe" and part in told else told.get(part, []):
            inner["new"] = [1]
    read = ORDER if isinstance(message, (ListenOnLink, CallOnLink)) else EVENT
    assert read(told) == message
    assert json.loads(json.dumps(encode(message)))["type"] == message.type


def test_only_launches_with_a_network_are_asked() -> None:
    assert ends_of(job("b0.l0", ["t0"], 3, interfaces=("eth0",))) == (0, 1)
    assert ends_of(job("b0.l0", ["t0"])) is None
    assert ends_of(job("b0.l0", ["t0"], 1, interfaces=("lo",))) is None


@pytest.fixture
def allocation(tmp_path: Path) -> Iterator[Allocation]:
    found = Allocation(tmp_path)
    yield found
    found.close()


def starts(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event["type"] == "trial_starts"]


def test_every_trial_of_a_life_has_what_was_measured_before_its_first(
    allocation: Allocation,
) -> None:
    events = run_jobs(allocation.attach(), job("b0.l0", ["t0", "t1"], interfaces=("eth0",)))
    first, second = starts(events)
    assert first["facts"] == second["facts"]
    assert first["facts"]["ceiling_gbps"] == 9.0
    assert first["facts"]["eight_streams_gbps"] == 72.0
    assert first["facts"]["round_trip_s"] == 1e-4
    assert first["facts"]["congestion_control"] == "cubic"
    assert not [event for event in events if "link" in event["type"]]  # the leader's own business


@pytest.mark.parametrize("node", ["0", "1"])
def test_a_host_that_cannot_measure_costs_no_trial(allocation: Allocation, node: str) -> None:
    events = run_jobs(allocation.attach(), job("x", ["t0"], interfaces=("eth0",), deaf=node))
    (told,) = starts(events)
    assert told["facts"] is None
    assert told["notes"] == [
        f"its round trip and the ceilings of one and eight streams are unknown: node {node} is deaf"
    ]
    assert [event["type"] for event in events].count("trial_ends") == 1


def test_a_rank_that_fails_meanwhile_is_a_launch_that_did_not_come_up(
    allocation: Allocation,
) -> None:
    events = run_jobs(allocation.attach(), job("x", ["t0"], interfaces=("e",), dies_probing="1"))
    kinds = [event["type"] for event in events]
    assert kinds.count("life_begins") == kinds.count("life_ends") == 1
    assert "trial_begins" not in kinds
    assert kinds[-1] == "jobs_done"


def test_a_silent_host_is_waited_for_no_longer_than_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the leader's own clock: what is asked of `hear` lies that far ahead."""
    monkeypatch.setattr(link_facts.time, "monotonic", lambda: 1000.0)
    asked = []

    async def hear(deadline_s: float) -> None:
        asked.append(deadline_s)

    found = asyncio.run(measure_link((0, 1), lambda *_: None, hear))
    assert asked == [1000.0 + link_facts.ANSWER_LIMIT_S]
    assert found.facts is None
