"""Proves tests/platforms/emulated/rate_verdict.py, on queues that are reckoned: a token bucket that
is kept full, with the times in which its timer, its sender and its reader had no core."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.platforms.emulated.rate_verdict import (
    ON_THE_BOUND,
    Judge,
    Judgement,
    Rate,
    Reading,
    Span,
    Verdict,
    judge_span,
    was_never_empty,
)

NOMINAL = Rate(bytes_per_s=125e6, slack_bytes=40_000)
STEP_S = 1e-4
BURST_S = 100e-6
DEEP_BYTES = 37_500_000
Away = Sequence[tuple[float, float]]
"""Times in which the queue's timer has no core, in order."""


def readings(
    ratio: float, away: Away = (), *, seconds: float = 3.0, backlog_bytes: int = DEEP_BYTES
) -> Iterator[Reading]:
    """Every 4 ms, of a full queue that lets `ratio` of the nominal rate through."""
    sent = tokens = 0.0
    for number in range(round(seconds / STEP_S)):
        now_s = number * STEP_S
        tokens += ratio * NOMINAL.bytes_per_s * STEP_S
        if not any(begin <= now_s < end for begin, end in away):
            sent, tokens = sent + tokens, 0.0
        tokens = min(tokens, ratio * NOMINAL.bytes_per_s * BURST_S)
        if number % 40 == 0:
            yield Reading(
                before_s=now_s - 3e-5,
                after_s=now_s + 3e-5,
                num_bytes=round(sent),
                backlog_bytes=backlog_bytes,
            )


def lost_in(away: Away) -> Callable[[float, float], float]:
    def lost(begin_s: float, end_s: float) -> float:
        overlaps = (min(end, end_s) - max(begin, begin_s) for begin, end in away)
        return sum(max(0.0, each - BURST_S) for each in overlaps) / (end_s - begin_s)

    return lost


def judged(seen: Iterator[Reading], away: Away = ()) -> Judgement:
    judge = Judge(NOMINAL, lost_in(away))
    any(map(judge.take, seen))
    return judge.judgement()


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [
        (0.9, Verdict.SLOW),
        (0.95, Verdict.SLOW),
        (0.97, Verdict.SLOW),
        (0.99, Verdict.RIGHT),
        (1.0, Verdict.RIGHT),
        (1.02, Verdict.FAST),
        (1.05, Verdict.FAST),
    ],
)
def test_two_spans_say_what_is_so(ratio: float, verdict: Verdict) -> None:
    found = judged(readings(ratio))
    assert found.verdict == verdict
    assert len(found.spans) == 2
    assert found.ratio == pytest.approx(ratio, abs=0.001)
    assert found.seconds < 0.3


@given(
    st.sampled_from([0.95, 1.0, 1.05]),
    st.lists(st.tuples(st.floats(0.001, 0.9), st.floats(0.001, 0.6)), max_size=8),
)
@settings(max_examples=30)
def test_whatever_the_machine_does_nothing_wrong_is_said(
    ratio: float, gaps_and_bursts: list[tuple[float, float]]
) -> None:
    """Times of which the probe knows, of any length and at any distance."""
    now_s, away = 0.0, []
    for gap_s, burst_s in gaps_and_bursts:
        away.append((now_s + gap_s, now_s + gap_s + burst_s))
        now_s = away[-1][1]
    found = judged(readings(ratio, away, seconds=1.5), away)
    wanted = {0.95: Verdict.SLOW, 1.0: Verdict.RIGHT, 1.05: Verdict.FAST}[ratio]
    assert found.verdict in (wanted, None)
    assert (found.verdict is None) == bool(found.reason)


def test_a_machine_that_is_never_ours_judges_nothing_but_too_fast() -> None:
    away = [(0.02 * number, 0.02 * number + 0.0105) for number in range(200)]
    slow = judged(readings(1.0, away), away)
    assert slow.verdict is None
    assert slow.reason.startswith("0 of 2 spans in 3.0 s; of ")
    assert "the cores were not ours in " in slow.reason
    assert judged(readings(2.5, away), away).verdict == Verdict.FAST


def test_a_queue_without_enough_before_it_says_nothing_of_too_slow() -> None:
    """Its sender may have been the slow one."""
    shallow = judged(readings(0.9, backlog_bytes=400_000))
    assert shallow.verdict is None
    assert "the queue may have been empty" in shallow.reason
    assert judged(readings(1.05, backlog_bytes=0)).verdict == Verdict.FAST


@pytest.mark.parametrize(
    ("sent_and_waiting", "is_full"),
    [
        ([(0, 10), (9, 10), (18, 1)], True),
        ([(0, 10), (10, 10)], False),
        ([(0, 10), (5, 0)], False),
        ([(0, 0), (0, 10)], False),
    ],
)
def test_a_queue_is_full_where_less_left_than_waited(
    sent_and_waiting: list[tuple[int, int]], is_full: bool
) -> None:
    seen = [
        Reading(before_s=number, after_s=number, num_bytes=sent, backlog_bytes=waiting)
        for number, (sent, waiting) in enumerate(sent_and_waiting)
    ]
    assert was_never_empty(seen) == is_full


def test_one_reading_that_took_long_is_no_end_of_a_span() -> None:
    first, *_, last = readings(1.0, seconds=0.12)
    late = Reading(
        before_s=last.before_s,
        after_s=last.after_s + 0.01,
        num_bytes=last.num_bytes,
        backlog_bytes=last.backlog_bytes,
    )
    assert judge_span([first, late], NOMINAL, lost_in(())) == "it was not read closely"
    assert isinstance(judge_span([first, last], NOMINAL, lost_in(())), Span)


def test_what_lies_on_the_bound_is_not_looked_at_till_it_fits() -> None:
    """Each span of it is refused as a whole: no two looks share a reading but their ends."""
    found = judged(readings(0.979))
    assert found.verdict is None
    assert found.refused == {ON_THE_BOUND: 28}


def test_three_spans_that_say_three_things_say_nothing() -> None:
    parts = [list(readings(ratio, seconds=0.15)) for ratio in (0.9, 1.0, 1.1)]
    joined: list[Reading] = []
    for part in parts:
        for earlier, later in pairwise(part):
            begin_s, sent = (joined[-1].before_s, joined[-1].num_bytes) if joined else (0.0, 0)
            joined.append(
                Reading(
                    before_s=begin_s + later.before_s - earlier.before_s,
                    after_s=begin_s + later.after_s - earlier.before_s,
                    num_bytes=sent + later.num_bytes - earlier.num_bytes,
                    backlog_bytes=DEEP_BYTES,
                )
            )
    judge = Judge(NOMINAL, lost_in(()))
    any(map(judge.take, joined))
    found = judge.judgement()
    assert found.verdict is None or len({span.verdict for span in found.spans}) < 3
