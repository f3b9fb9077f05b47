"""Do parts follow each other without a gap, whatever moments are told?"""

import pytest

from broadgauge.probes.storage import stopwatch
from broadgauge.probes.storage.stopwatch import Stopwatch


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(stopwatch.time, "perf_counter", made)
    return made


def test_parts_end_now_and_add_to_what_they_had(clock: Clock) -> None:
    watch = Stopwatch(_last_s=clock())
    for part, passed_s in (("gather", 1.0), ("copy", 2.0), ("gather", 4.0)):
        clock.now_s += passed_s
        watch.ends(part)
    assert watch.parts_s == {"gather": 5.0, "copy": 2.0}
    assert watch.seconds == 7.0


def test_a_moment_before_the_last_part_ended_is_nothing(clock: Clock) -> None:
    """A thread had begun to write before its caller went on."""
    watch = Stopwatch(_last_s=clock())
    clock.now_s += 3.0
    watch.ends("stage")
    watch.ends("plan", at_s=102.0)
    watch.ends("serialise", at_s=104.5)
    assert watch.parts_s == {"stage": 3.0, "plan": 0.0, "serialise": 1.5}


def test_writing_is_taken_out_of_what_it_alternated_with(clock: Clock) -> None:
    watch = Stopwatch(_last_s=clock())
    clock.now_s += 5.0
    watch.ends("serialise", write_s=2.0)
    assert watch.parts_s == {"serialise": 3.0, "write": 2.0}
    clock.now_s += 1.0
    watch.ends("serialise", write_s=9.0)  # of which most was before the last part ended
    assert watch.parts_s == {"serialise": 3.0, "write": 3.0}
