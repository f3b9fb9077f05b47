"""Does a training's own thread tell when steps stop coming, and only then? By a made-up clock."""

import threading
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from broadgauge.probes import step_watch
from broadgauge.probes.step_watch import StepWatch

STALL_S = 0.01
"""The thread looks ten times as often, by the true clock."""
STEP_S = STALL_S / 100
LIMIT_S = 300
"""Against hangs."""


class Clock:
    """It stands still until a test moves it, and counts the looks of the watch's thread."""

    def __init__(self):
        self.now_s, self.looks = 0.0, 0
        self.looked = threading.Condition()

    def monotonic(self):
        with self.looked:
            if threading.current_thread().name == "step watch":
                self.looks += 1
                self.looked.notify_all()
            return self.now_s

    def pass_by(self, seconds):
        with self.looked:
            self.now_s += seconds

    def wait_for_looks(self):
        """Until the thread has seen what the clock says now."""
        with self.looked:
            begin = self.looks
            assert self.looked.wait_for(lambda: self.looks >= begin + 2, LIMIT_S)


@pytest.fixture
def clock(monkeypatch):
    made_up = Clock()
    monkeypatch.setattr(step_watch, "time", SimpleNamespace(monotonic=made_up.monotonic))
    return made_up


class Told(list):
    """What the watch has told; `came` is set by the first."""

    def __init__(self):
        self.came = threading.Event()

    def tell(self, words):
        self.append(words)
        self.came.set()


@contextmanager
def watched(told):
    watch = StepWatch(STALL_S, told.tell)
    with watch.watching():
        yield watch


def make_steps(watch, clock, number=5):
    with watch.steps() as has_stepped:
        for _ in range(number):
            clock.pass_by(STEP_S)
            has_stepped()


def test_a_step_that_does_not_end_is_told_once(clock):
    told = Told()
    with watched(told) as watch, watch.steps() as has_stepped:
        for _ in range(5):
            clock.pass_by(STEP_S)
            has_stepped()
        clock.pass_by(STALL_S * 0.99)
        clock.wait_for_looks()
        assert told == []
        clock.pass_by(STALL_S * 10)
        assert told.came.wait(LIMIT_S)
    assert told == [f"no step for 0.1 s, where one came every {STEP_S:.2g} s"]


def test_what_is_between_blocks_is_no_step(clock):
    told = Told()
    with watched(told) as watch:
        for _ in range(2):
            make_steps(watch, clock)
            clock.pass_by(3 * STALL_S)
            clock.wait_for_looks()
    assert told == []


def test_before_the_pace_is_known_a_step_may_take_longer(clock):
    told = Told()
    with watched(told) as watch, watch.steps():
        clock.pass_by(2 * STALL_S)
        clock.wait_for_looks()
        assert told == []
        clock.pass_by(2 * STALL_S)
        assert told.came.wait(LIMIT_S)
    assert told == ["no step for 0.0 s, after the first"]
