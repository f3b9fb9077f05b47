"""Is each event of a leader taken once and in order, whatever becomes of its log?"""

import random
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broadgauge.messages.codec import encode
from broadgauge.messages.frames import FrameWriter
from broadgauge.messages.leader import (
    Attach,
    LeaderGivesUp,
    LeaderHello,
    LeaderOrder,
    Spooled,
    Stored,
    TakeJobs,
    TrialBegins,
)
from broadgauge.platforms.kubernetes.leader_log import LogLink, LogPump
from broadgauge.platforms.led.handle import LinkLost

NUM_EVENTS = 30


def hello(generation: int = 0, leader: str = "") -> LeaderHello:
    return LeaderHello(version="v", pid=1, generation=generation, next_number=0, leader=leader)


def event(number: int, leader: str = "") -> Spooled:
    told = TrialBegins(trial_id=f"t{number}", unix_s=0.0)
    return Spooled(number=number, generation=0, event=encode(told), leader=leader)


def lines(sender: str, first: int = 0, last: int = NUM_EVENTS - 1, leader: str = "") -> list[bytes]:
    frames = FrameWriter(sender, is_shared=True)
    told = [event(number, leader) for number in range(first, last + 1)]
    return [frames.write(each) for each in (hello(leader=leader), *told)]


class Way:
    """A log, and what was put where the leader looks."""

    def __init__(self, *pieces: bytes, last: int = -1, ended: str | None = None) -> None:
        self.pieces = list(pieces)
        self.orders: list[LeaderOrder] = []
        self.heard: list[str] = []
        self.link = LogLink(
            pump=LogPump(self.stream()),
            tell=self.tell,
            hear_line=self.heard.append,
            begins=lambda: None,
            why_ended=lambda: ended,
            last=last,
            generation=0,
        )

    def stream(self) -> Iterator[bytes]:
        num_idle = 0
        while num_idle < 40:  # the leader lives: it may be asked for more
            if self.pieces:
                num_idle = 0
                yield self.pieces.pop(0)
            else:
                num_idle += 1
                time.sleep(0.005)

    def tell(self, order: LeaderOrder) -> None:
        """The leader does as it is asked."""
        self.orders.append(order)
        if isinstance(order, Attach):
            self.pieces += lines(f"again{len(self.orders)}", order.after + 1)

    def numbers(self) -> list[int]:
        found = []
        while True:
            try:
                came = self.link.receive(5)
            except LinkLost:
                return found
            assert came is not None
            found.append(came.number)


def test_what_stands_beside_the_events_is_heard_as_text() -> None:
    way = Way(b"broadgauge: node 0 is a\n", *lines("leader"), b"a rank's word\n")
    assert way.numbers() == list(range(NUM_EVENTS))
    assert way.heard == ["broadgauge: node 0 is a", "a rank's word"]


def test_a_log_that_is_read_from_its_beginning_tells_what_is_new() -> None:
    assert Way(*lines("leader"), last=20).numbers() == list(range(21, NUM_EVENTS))


def test_a_log_told_twice_is_taken_once() -> None:
    assert Way(*lines("leader"), *lines("leader"), *lines("b", 10)).numbers() == list(
        range(NUM_EVENTS)
    )


@pytest.mark.parametrize("begins_at", [0, 1])
def test_events_of_another_leader_are_not_taken(begins_at: int) -> None:
    """A pod that was made anew has the same name, and numbers its events from 0 again; its hello
    may be rotated away."""
    old = lines("a", last=4, leader="old")
    way = Way(*old, *lines("b", leader="new")[begins_at:])
    assert way.numbers() == [0, 1, 2, 3, 4]
    assert way.orders == []
    with pytest.raises(LinkLost, match="another leader began in its place"):
        way.link.receive(1)


def test_what_was_rotated_away_is_asked_for_and_comes() -> None:
    way = Way(*lines("leader", 12), *[b"words\n"] * 3)
    assert way.numbers() == list(range(NUM_EVENTS))
    assert way.orders == [Attach(after=-1)]  # once, however much came after the gap


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), ratio=st.floats(0, 0.6))
def test_lost_and_cut_lines_lose_no_event_while_the_leader_lives(seed: int, ratio: float) -> None:
    chance = random.Random(seed)
    damaged = []
    for line in lines("leader"):
        if chance.random() >= ratio:
            damaged.append(line)
        elif chance.random() < 0.5:
            damaged.append(line[: chance.randrange(len(line))] + b"\n")
    # Its last event comes whole: a gap is known by what comes after it.
    way = Way(*damaged, lines("last", NUM_EVENTS - 1)[-1])
    assert way.numbers() == list(range(NUM_EVENTS))


def test_orders_are_put_where_the_leader_looks_and_what_is_stored_is_not() -> None:
    way = Way()
    way.link.send(Stored(number=3))
    way.link.send(TakeJobs(generation=1, jobs=()))
    assert way.orders == [TakeJobs(generation=1, jobs=())]


def test_last_words_and_the_end_of_a_pod_are_told() -> None:
    frames = FrameWriter("leader")
    way = Way(frames.write(hello()), frames.write(LeaderGivesUp(message="no space")))
    assert way.numbers() == []
    assert way.link.last_words == "no space"
    gone = Way(ended="pod a was evicted: low on memory")
    with pytest.raises(LinkLost, match=r"evicted|the log ended"):
        gone.link.wait_for_hello(5)


def test_a_gap_at_the_end_of_a_log_is_seen_by_the_next_hello() -> None:
    """Nothing comes after the last event for as long as ranks compute."""
    later = replace(hello(leader="a"), next_number=NUM_EVENTS)
    frames = FrameWriter("leader", is_shared=True)
    told = [frames.write(event(number, "a")) for number in range(NUM_EVENTS)]
    way = Way(*told[:-2], frames.write(later))
    assert way.numbers() == list(range(NUM_EVENTS))
    assert way.orders == [Attach(after=NUM_EVENTS - 3)]


def test_a_log_that_ends_before_all_is_told_says_how_much_is_missing() -> None:
    frames = FrameWriter("leader", is_shared=True)
    told = [frames.write(event(number)) for number in range(3)]
    end = frames.write(replace(hello(), next_number=5)) + frames.close()
    way = Way(*told, end)
    assert way.numbers() == [0, 1, 2]
    with pytest.raises(LinkLost, match=r"^it has ended, and its log lacks 2 events$"):
        way.link.receive(5)
    assert way.link.last_words is None  # a volume may have them


def test_a_leader_that_gives_up_and_was_not_heard_whole_has_no_last_words() -> None:
    """Its log was rotated while nobody was there; a volume may have what is missing."""
    frames = FrameWriter("leader", is_shared=True)
    told = [frames.write(event(number)) for number in range(2, 5)]
    end = frames.write(replace(hello(), next_number=5))
    way = Way(*told, end, frames.write(LeaderGivesUp(message="the volume is full")))
    with pytest.raises(LinkLost, match="the volume is full"):
        way.link.receive(5)
    assert way.link.last_words is None


def test_a_leader_that_has_ended_and_was_heard_whole_has_last_words() -> None:
    frames = FrameWriter("leader", is_shared=True)
    told = [frames.write(event(number)) for number in range(3)]
    way = Way(*told, frames.write(replace(hello(), next_number=3)) + frames.close())
    assert way.numbers() == [0, 1, 2]
    assert way.link.last_words == "it has ended"


def test_a_hello_of_an_earlier_time_does_not_undo_what_the_tool_knows() -> None:
    way = Way(*lines("leader"))
    way.link.generation = 3
    assert way.link.wait_for_hello(60).generation == 3
