"""Which children does a supervisor start to measure a link, and what does it then say of it?"""

from collections.abc import Callable, Mapping
from types import SimpleNamespace

import pytest

from broadgauge.advise.limits import CEILING_OVER_RATE
from broadgauge.agent.emulated.shaping import LinkPlan, unshaped
from broadgauge.agent.supervisor import link_facts
from broadgauge.agent.supervisor.link_facts import ENOUGH_OVER_RATE, LinkMeasurements
from broadgauge.agent.supervisor.side_process import SideAnswer
from broadgauge.messages.counters import LinkFacts
from broadgauge.messages.payload import payload_rate_gbps

UNSHAPED = LinkPlan(rate_gbps=None, mtu=1500)
ONE_GBPS = 20.0
"""On the wire; eight carry twice as much."""


class Host:
    """A host of made-up speed, on which a child's work is done at once, and counted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.children: list[str] = []
        self.shaped: list[LinkPlan] = []
        self.durations_s: list[float] = []
        self.num_starved = 0
        """So many first tries get nothing through."""
        monkeypatch.setattr(link_facts, "measure_stream", self._stream)
        monkeypatch.setattr(link_facts, "measure_round_trip_time_s", self._round_trip)
        monkeypatch.setattr(link_facts.SideProcess, "start", self._start)
        cluster = SimpleNamespace(
            nodes=(object(), object()), shape=self.shaped.append, congestion_control="cubic"
        )
        self.links = LinkMeasurements(cluster, has_overlay=False)  # type: ignore[arg-type]

    def facts(self, plan: LinkPlan) -> LinkFacts:
        """As for a trial on this link."""
        measuring = self.links.shape_and_measure(plan)
        try:
            child = next(measuring)
            while True:
                child = measuring.send(self._answer(child))
        except StopIteration as ended:
            assert self.shaped[-1] == plan
            return ended.value  # type: ignore[no-any-return]

    def _answer(self, figures: object) -> SideAnswer:
        if self.num_starved:
            self.num_starved -= 1
            return SideAnswer(figures={}, trouble="a stream got nothing through in its time")
        return SideAnswer(figures=figures)  # type: ignore[arg-type]

    def _start(self, work: Callable[[], Mapping[str, float]], _limit_s: float) -> object:
        return work()

    def _stream(self, *_nodes: object, num_streams: int, **times: float) -> SimpleNamespace:
        self.durations_s.append(times["duration_s"])
        assert self.shaped[-1] == unshaped(self.shaped[-1]), "a ceiling is of the bare link"
        self.children.append(f"{num_streams} streams")
        wire_gbps = ONE_GBPS if num_streams == 1 else 2 * ONE_GBPS
        return SimpleNamespace(payload_gbps=payload_rate_gbps(wire_gbps, 1500))

    def _round_trip(self, *_nodes: object) -> float:
        self.children.append("round trip")
        return 5e-5


def shaped_to(rate_gbps: float, **more: float) -> LinkPlan:
    return LinkPlan(rate_gbps=rate_gbps, mtu=1500, **more)  # type: ignore[arg-type]


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(monkeypatch)


@pytest.mark.parametrize(
    ("plan", "eight_gbps"),
    [
        (UNSHAPED, 40.0),
        (shaped_to(10.01), 40.0),
        (shaped_to(9.99), None),
        (shaped_to(0.2), None),
        (shaped_to(40.0, receive_rate_gbps=5.0), None),  # data waits for the slower direction
    ],
)
def test_eight_streams_are_measured_where_one_is_not_enough(
    host: Host, plan: LinkPlan, eight_gbps: float | None
) -> None:
    facts = host.facts(plan)
    assert facts.ceiling_gbps == pytest.approx(ONE_GBPS)
    assert facts.eight_streams_gbps == (eight_gbps and pytest.approx(eight_gbps))
    assert facts.is_one_stream_enough is (eight_gbps is None)
    many = [] if eight_gbps is None else ["8 streams"]
    assert host.children == ["1 streams", *many, "round trip"]


def test_each_link_is_measured_once_and_a_faster_one_asks_for_more(host: Host) -> None:
    slow, fast = shaped_to(5.0), shaped_to(15.0)
    assert unshaped(slow) == unshaped(fast)
    first = host.facts(slow)
    assert host.children == ["1 streams", "round trip"]
    assert host.facts(fast).eight_streams_gbps == pytest.approx(40.0)
    assert host.children[2:] == ["8 streams", "round trip"]
    assert host.facts(UNSHAPED).eight_streams_gbps == pytest.approx(40.0)
    assert host.facts(slow) == first  # whichever of the two is first in a launch
    assert host.children[4:] == ["round trip"]


def test_enough_is_what_the_verdict_asks_for() -> None:
    assert ENOUGH_OVER_RATE == CEILING_OVER_RATE


def test_a_stream_that_had_no_turn_is_measured_once_more_for_longer(host: Host) -> None:
    host.num_starved = 1
    assert host.facts(UNSHAPED).ceiling_gbps == pytest.approx(ONE_GBPS)
    first_s, second_s, _eight_s = host.durations_s
    assert second_s >= 3 * first_s
    assert host.links.notes == ()


def test_after_two_tries_it_is_unknown_and_said(host: Host) -> None:
    host.facts(shaped_to(9.99))  # one stream is enough here
    host.num_starved = 2
    assert host.facts(shaped_to(10.01)).eight_streams_gbps is None
    (note,) = host.links.notes
    assert note.startswith("the ceiling of 8 streams over the link is unknown: a stream got")
