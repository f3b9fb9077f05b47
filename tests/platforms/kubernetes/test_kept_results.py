"""Is all that a job kept on its volume heard once, whatever becomes of the log that tells it?"""

from collections.abc import Iterator

import pytest
from tests.platforms.kubernetes.test_leader_log import event

from broadgauge.messages.frames import FrameWriter
from broadgauge.messages.leader import LeaderHello, Stored, TakeJobs
from broadgauge.platforms.kubernetes.kept_results import KeptLink, _refuse_order
from broadgauge.platforms.kubernetes.leader_log import LogPump
from broadgauge.platforms.led.handle import LinkLost, NothingMore

NUM_EVENTS = 12


def told(*numbers: int) -> bytes:
    frames = FrameWriter("kept-1", is_shared=True)
    hello = LeaderHello(version="v", pid=1, generation=0, next_number=NUM_EVENTS)
    return b"".join([frames.write(hello), *(frames.write(event(n)) for n in numbers)])


def link_of(data: bytes, last: int = -1) -> KeptLink:
    def stream() -> Iterator[bytes]:
        yield data

    return KeptLink(
        pump=LogPump(stream()),
        tell=_refuse_order,
        begins=lambda: None,
        hear_line=lambda line: None,
        why_ended=lambda: None,
        last=last,
        generation=-1,
    )


def numbers_until(link: KeptLink, end: type[Exception]) -> list[int]:
    found: list[int] = []

    def hear() -> None:
        while (came := link.receive(5)) is not None:
            found.append(came.number)

    with pytest.raises(end) as caught:
        hear()
    assert caught.type is end
    return found


def test_after_its_last_event_there_is_nothing_more() -> None:
    assert numbers_until(link_of(told(*range(NUM_EVENTS))), NothingMore) == list(range(NUM_EVENTS))
    later = link_of(told(*range(NUM_EVENTS)), last=8)
    assert numbers_until(later, NothingMore) == [9, 10, 11]


@pytest.mark.parametrize("numbers", [range(5), [], [*range(5), 7, 8]])
def test_a_log_that_was_cut_or_rotated_is_not_called_all(numbers: "range | list[int]") -> None:
    """Who follows asks again from there."""
    whole = [number for number in numbers if number < 5]
    assert numbers_until(link_of(told(*numbers)), LinkLost) == whole


def test_it_can_not_be_given_more_to_run() -> None:
    link = link_of(told(*range(NUM_EVENTS)))
    link.send(Stored(number=3))
    with pytest.raises(NothingMore):
        link.send(TakeJobs(generation=1, jobs=()))
