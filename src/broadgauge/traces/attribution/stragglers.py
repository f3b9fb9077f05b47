"""Which rank do the others wait for, by how much, and what does it do meanwhile?"""

from collections.abc import Sequence

import numpy as np

from broadgauge.traces.attribution.activity import TracedActivity
from broadgauge.traces.attribution.matching import Matching
from broadgauge.traces.explanation import RankExplanation, StepPart, Straggler
from broadgauge.traces.trace import RankTrace

LEAST_RATIO = 0.01
"""Of a step: who is waited for less is no straggler. Our own: ranks always differ by a little."""
CAUSE_RATIO = 0.5
_CAUSES = (
    StepPart.COMPUTE,
    StepPart.FSDP_COPIES,
    StepPart.DATA_WAIT,
    StepPart.CHECKPOINT,
    StepPart.HOST_IDLE,
    StepPart.OTHER,
)
"""What makes a rank late; its own communication is what the others wait in, too."""


def stragglers(
    traces: Sequence[RankTrace],
    activities: Sequence[TracedActivity],
    waiting: Sequence[np.ndarray],
    matching: Matching,
    ranks: Sequence[RankExplanation],
) -> tuple[Straggler, ...]:
    """The ranks that others wait for, the worst first.

    Each collective's waiting that nothing hid is the fault of the rank that came last. A rank's
    delay is what the one that waited longest for it has waited, a step. `waiting` is of each rank
    `bool[pieces]`: straggler_wait.
    """
    waited = np.zeros((len(traces), len(traces)))
    for one in matching.matched:
        for place, call in one.calls:
            span = traces[place].collectives[call]
            start = np.array([span.start_ns])
            end = np.array([span.end_ns - one.transfer_ns])
            waited[place, one.last] += activities[place].moments.within(waiting[place], start, end)[
                0
            ]
    np.fill_diagonal(waited, 0)
    delays_s = waited.max(axis=0) / 1e9 / len(ranks[0].steps)
    step_time_s = sum(rank.step_time_s for rank in ranks) / len(ranks)
    late = [int(place) for place in np.argsort(-delays_s) if delays_s[place] > 0]
    return tuple(
        Straggler(
            rank=_number(ranks, place),
            delay_s=float(delays_s[place]),
            cause=_cause(ranks, place, float(delays_s[place])),
        )
        for place in late
        if delays_s[place] >= LEAST_RATIO * step_time_s
    )


def _number(ranks: Sequence[RankExplanation], place: int) -> int:
    rank = ranks[place].rank
    return place if rank is None else rank


def _cause(ranks: Sequence[RankExplanation], late: int, delay_s: float) -> str:
    """The part in which it exceeds the mean of the others by most, if that explains the half."""
    others = [rank for place, rank in enumerate(ranks) if place != late]

    def excess_s(part: StepPart) -> float:
        own, theirs = _part_s(ranks[late], part), [_part_s(rank, part) for rank in others]
        return own - sum(theirs) / len(theirs)

    worst = max(_CAUSES, key=excess_s)
    return str(worst) if excess_s(worst) >= CAUSE_RATIO * delay_s else "unknown"


def _part_s(rank: RankExplanation, part: StepPart) -> float:
    return (rank.parts.of(part) or 0) / 1e9 / len(rank.steps)
