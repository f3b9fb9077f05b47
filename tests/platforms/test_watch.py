"""Is the right rank named when a time limit passes?"""

from broadgauge.agent.supervisor.watch import Watch
from broadgauge.specs.records.record import Phase
from broadgauge.specs.time_limits import TimeLimits

LIMITS = TimeLimits(rendezvous_s=10, warm_up_s=20, measure_s=30, teardown_s=5)
NOBODY: frozenset[int] = frozenset()


def measuring(num_ranks: int) -> Watch:
    """All ranks began to measure at 100 s."""
    watch = Watch.of(range(num_ranks), LIMITS, 0.0)
    watch.all_enter(Phase.RENDEZVOUS, 90.0)
    for rank in range(num_ranks):
        watch.hear(rank, {"type": "phase", "phase": "measure", "detail": "work"}, 100.0)
    return watch


def test_the_start_counts_as_rendezvous_until_hello() -> None:
    watch = Watch.of(range(2), LIMITS, 3.0)
    assert watch.deadline_s() == 13.0
    watch.hear(0, {"type": "hello"}, 5.0)
    watch.hear(1, {"type": "hello"}, 6.0)
    assert watch.is_idle
    assert watch.deadline_s() is None


def test_a_phase_begins_with_its_first_frame_only() -> None:
    watch = measuring(1)
    watch.hear(0, {"type": "phase", "phase": "measure", "detail": "more"}, 110.0)
    assert watch.deadline_s() == 130.0
    watch.hear(0, {"type": "phase", "phase": "teardown"}, 120.0)
    assert watch.deadline_s() == 125.0
    watch.hear(0, {"type": "done"}, 121.0)
    assert watch.deadline_s() is None


def test_nothing_expires_before_its_time() -> None:
    watch = measuring(2)
    assert watch.expiry(129.9, NOBODY) is None
    assert watch.expiry(130.0, NOBODY) is not None


def test_the_rank_that_is_not_at_the_mark_is_named() -> None:
    watch = measuring(3)
    watch.hear(2, {"type": "block", "label": "b"}, 120.0)
    watch.hear(0, {"type": "mark", "label": "a:end"}, 105.0)
    watch.hear(1, {"type": "mark", "label": "a:end"}, 105.0)
    expiry = watch.expiry(130.0, NOBODY)
    assert expiry is not None
    assert (expiry.rank, expiry.phase) == (2, Phase.MEASURE)
    assert "others wait at a:end" in expiry.message
    assert "its last block: b" in expiry.message


def test_the_oldest_to_speak_is_named_when_nobody_waits() -> None:
    watch = measuring(2)
    watch.hear(0, {"type": "block", "label": "b"}, 120.0)
    expiry = watch.expiry(131.0, NOBODY)
    assert expiry is not None
    assert expiry.rank == 1
    assert "silent for 31.0 s" in expiry.message


def test_a_stopped_rank_is_named_before_all_others() -> None:
    watch = measuring(2)
    watch.hear(1, {"type": "block", "label": "b"}, 129.0)
    expiry = watch.expiry(130.0, frozenset({1}))
    assert expiry is not None
    assert expiry.rank == 1
    assert "its process is stopped" in expiry.message


def test_a_mark_is_reached_when_all_wait_at_it() -> None:
    watch = measuring(2)
    assert watch.mark_reached() is None
    watch.hear(0, {"type": "mark", "label": "a"}, 101.0)
    assert watch.mark_reached() is None
    watch.hear(1, {"type": "mark", "label": "b"}, 101.0)
    assert watch.mark_reached() is None
    watch.hear(1, {"type": "mark", "label": "a"}, 101.0)
    assert watch.mark_reached() == "a"
    watch.release(102.0)
    assert watch.mark_reached() is None


def test_broken_frames_do_not_raise() -> None:
    watch = measuring(1)
    for frame in ({}, {"type": 7}, {"type": "phase", "phase": ["x"]}, {"type": "mark"}):
        watch.hear(0, frame, 101.0)
    assert watch.ranks[0].phase is Phase.MEASURE


def test_parts_of_a_phase_are_counted_together() -> None:
    """Collectives warm up and measure size by size: `measure_s` is of all sizes of a trial."""
    watch, now_s = measuring(2), 100.0
    for _ in range(4):
        for phase, lasts_s in (("warm_up", 2.0), ("measure", 6.0)):
            for rank in (0, 1):
                watch.hear(rank, {"type": "phase", "phase": phase}, now_s)
            now_s += lasts_s
            assert watch.expiry(now_s - 0.1, NOBODY) is None
    assert watch.deadline_s() == now_s + LIMITS.measure_s - 4 * 6.0
    expiry = watch.expiry(now_s + LIMITS.measure_s - 4 * 6.0, NOBODY)
    assert expiry is not None
    assert "measure took longer than 30 s in all" in expiry.message


def test_each_trial_has_all_its_time() -> None:
    watch = measuring(1)
    watch.hear(0, {"type": "phase", "phase": "warm_up"}, 120.0)
    watch.hear(0, {"type": "done"}, 121.0)
    watch.all_enter(Phase.RENDEZVOUS, 130.0)
    watch.hear(0, {"type": "phase", "phase": "measure"}, 131.0)
    assert watch.deadline_s() == 131.0 + LIMITS.measure_s


def test_a_rank_that_waits_for_a_storage_is_named_as_long_as_it_does() -> None:
    watch = measuring(2)
    watch.hear(1, {"type": "block", "label": "b"}, 105.0)
    watch.hear(1, {"type": "unanswered", "message": "storage `nas` does not answer"}, 120.0)
    expiry = watch.expiry(130.0, NOBODY)
    assert expiry is not None
    assert expiry.rank == 1
    assert "silent for 25.0 s" in expiry.message
    watch.hear(1, {"type": "unanswered", "message": ""}, 121.0)
    expiry = watch.expiry(130.0, NOBODY)
    assert expiry is not None
    assert expiry.rank == 0
