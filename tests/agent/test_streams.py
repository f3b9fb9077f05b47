"""Is what a stream carries counted in its window, however late the receiver comes to it?"""

from collections.abc import Iterator
from typing import Any

import pytest

from broadgauge.agent import streams
from broadgauge.agent.sides import SideFailed
from broadgauge.agent.streams import BUFFER_BYTES, receive_between, sum_gbps

LINE_BYTES_PER_S = 125_000_000
"""1 Gbit/s: a buffer's worth arrives in 2.1 ms."""


class Line:
    """A connection on which bytes arrive at the line's rate, and a clock. A read takes what is
    there, at most a buffer's worth; the receiver has no core in some spans of time."""

    def __init__(self, *away: tuple[float, float], read_s: float = 0.0001) -> None:
        self.now_s, self.taken_bytes, self.read_s, self.away = 0.0, 0, read_s, away

    def monotonic(self) -> float:
        return self.now_s

    def recv_into(self, buffer: bytearray) -> int:
        self.now_s += max(self.read_s, 0.0005 - self._waiting() / LINE_BYTES_PER_S)
        for begin_s, end_s in self.away:
            if begin_s <= self.now_s < end_s:
                self.now_s = end_s
        taken = min(len(buffer), self._waiting())
        self.taken_bytes += taken
        return taken

    def _waiting(self) -> int:
        return int(self.now_s * LINE_BYTES_PER_S) - self.taken_bytes


def ratio_of(line: Any, monkeypatch: pytest.MonkeyPatch) -> float:
    """What is counted from 0.3 to 0.9 s, over the line's rate."""
    monkeypatch.setattr(streams.time, "monotonic", line.monotonic)
    counted = receive_between(line, 0.3, 0.9)
    assert counted["payload_bytes"] > counted["measured_bytes"]
    return sum_gbps([counted]) / (8e-9 * LINE_BYTES_PER_S)


@pytest.mark.parametrize("away", [(0.25, 0.33), (0.299, 0.3001), (0.2, 0.5), (0.4, 0.48)])
def test_what_waited_when_the_window_began_is_not_counted(
    away: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """80 ms of the line are 13 % of the window, and were once counted."""
    assert ratio_of(Line(away), monkeypatch) == pytest.approx(1, abs=0.002)


def test_no_receiver_makes_a_line_faster_than_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Away for 30 ms in every 130, at every phase."""
    for phase in range(13):
        begins_s = [0.13 * n + phase / 100 for n in range(10)]
        spans = [(begin_s, begin_s + 0.03) for begin_s in begins_s]
        assert ratio_of(Line(*spans), monkeypatch) <= 1.002


def test_a_receiver_that_is_the_bound_is_counted_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It takes a buffer's worth in 4 ms, and finds more each time."""
    expected = BUFFER_BYTES / 0.004 / LINE_BYTES_PER_S
    assert ratio_of(Line(read_s=0.004), monkeypatch) == pytest.approx(expected, rel=0.002)


def test_a_stream_that_gets_nothing_through_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: Iterator[int] = iter([1000, 1000, 0])

    class Ends(Line):
        def recv_into(self, buffer: bytearray) -> int:
            del buffer
            self.now_s += 0.1
            return next(reads)

    line: Any = Ends()
    monkeypatch.setattr(streams.time, "monotonic", line.monotonic)
    with pytest.raises(SideFailed, match="nothing through"):
        receive_between(line, 0.3, 0.9)
