"""Does a training's own thread tell when steps stop coming, and only then?"""

import time

import pytest

from broadgauge.probes.step_watch import StepWatch

pytestmark = pytest.mark.measured
STALL_S = 0.3


def run_steps(pauses_s, *, between_blocks_s=0.0):
    """What is told of blocks of steps that take so long."""
    told = []
    watch = StepWatch(STALL_S, told.append)
    with watch.watching():
        for block in pauses_s:
            with watch.steps() as has_stepped:
                for pause_s in block:
                    time.sleep(pause_s)
                    has_stepped()
            time.sleep(between_blocks_s)
    return told


def test_a_step_that_does_not_end_is_told_once():
    (told,) = run_steps([[0.001] * 5 + [3 * STALL_S]])
    assert told.startswith("no step for 0.")
    assert "where one came every" in told


def test_what_is_between_blocks_is_no_step():
    assert run_steps([[0.001] * 5] * 2, between_blocks_s=3 * STALL_S) == []


def test_before_the_pace_is_known_a_step_may_take_longer():
    assert run_steps([[2 * STALL_S]]) == []
