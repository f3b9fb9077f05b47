"""Does a queue let through what it says? Decided by its own bytes, while it was never empty.

A span counts for little that noise can fake. Only what left a queue that had something to send all
the time says how fast it sends; and a queue whose timer comes late sends less, so that "too slow"
and "right" are said only of spans in which the cores were ours. A token bucket never makes up for
what it missed, so "too fast" is always true.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

SPAN_S = 0.1
"""At least. As short as the bounds allow, so that it fits between the bursts of a busy machine."""
LEAST_RATIO, MOST_RATIO = 0.98, 1.01
"""Of the nominal rate: what is right."""
MOST_LOST_RATIO = 0.01
"""Half of what a rate may be below the nominal one."""
MOST_VAGUE_RATIO = 0.01
"""How far apart the two ends of a span's interval may be for its middle to be judged."""
MOST_SLACK_RATIO = 0.005
AGREEING = 2
MOST_SPANS = 3
ON_THE_BOUND = "it lay on the bound"


class Verdict(StrEnum):
    """Of a span, or of a queue."""

    RIGHT = "right"
    SLOW = "too slow"
    FAST = "too fast"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a queue had sent, and what waited in it, at some time between two."""

    before_s: float
    after_s: float
    num_bytes: int
    backlog_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """What a queue is to let through."""

    bytes_per_s: float
    slack_bytes: int
    """What may leave at once: the bucket, and a packet that was begun before."""
    least_ratio: float = LEAST_RATIO
    most_ratio: float = MOST_RATIO

    @property
    def span_s(self) -> float:
        """How long is a span? The slack is to be little of it."""
        return max(SPAN_S, self.slack_bytes / self.bytes_per_s / MOST_SLACK_RATIO)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What a queue sent between two readings, over what it was to."""

    begin_s: float
    end_s: float
    ratio: float
    low_ratio: float
    high_ratio: float
    lost_ratio: float
    """Of the core that lost most; 0 where nobody asked."""
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What two of three spans say, or why nothing is said."""

    verdict: Verdict | None
    reason: str
    """Why it is not judged; empty where it is."""
    spans: tuple[Span, ...]
    refused: dict[str, int]
    """Spans that did not count, by what they lacked."""
    seconds: float

    @property
    def ratio(self) -> float | None:
        """The largest of the spans that agree: what is lost only takes away."""
        agreeing = [span.ratio for span in self.spans if span.verdict == self.verdict]
        return max(agreeing, default=None)


LostRatio = Callable[[float, float], float]


def was_never_empty(readings: Sequence[Reading]) -> bool:
    """Did each wait always have more before it than was sent in it? First come, first served: as
    long as less has left than waited, something waits."""
    return all(
        later.num_bytes - earlier.num_bytes < earlier.backlog_bytes and later.backlog_bytes > 0
        for earlier, later in pairwise(readings)
    )


def judge_span(readings: Sequence[Reading], rate: Rate, lost: LostRatio) -> Span | str:
    """What does the time from the first of these readings to the last say? Or what it lacks. The
    last one begins after the first one has ended."""
    first, last = readings[0], readings[-1]
    num_bytes = last.num_bytes - first.num_bytes
    longest_s, shortest_s = last.after_s - first.before_s, last.before_s - first.after_s
    low = (num_bytes - rate.slack_bytes) / (rate.bytes_per_s * longest_s)
    high = (num_bytes + rate.slack_bytes) / (rate.bytes_per_s * shortest_s)
    ratio = num_bytes / (rate.bytes_per_s * (longest_s + shortest_s) / 2)
    lost_ratio = 0.0
    if low > rate.most_ratio:
        said: Verdict | str = Verdict.FAST
    elif not was_never_empty(readings):
        said = "the queue may have been empty"
    elif (lost_ratio := lost(first.before_s, last.after_s)) > MOST_LOST_RATIO:
        said = "the cores were not ours"
    elif high < rate.least_ratio:
        said = Verdict.SLOW
    elif longest_s - shortest_s > MOST_VAGUE_RATIO * shortest_s:
        said = "it was not read closely"
    else:
        is_right = rate.least_ratio <= ratio <= rate.most_ratio
        said = Verdict.RIGHT if is_right else ON_THE_BOUND
    if not isinstance(said, Verdict):
        return said
    return Span(
        begin_s=first.before_s,
        end_s=last.after_s,
        ratio=ratio,
        low_ratio=low,
        high_ratio=high,
        lost_ratio=lost_ratio,
        verdict=said,
    )


class Judge:
    """Takes readings one by one until two of three spans agree."""

    def __init__(self, rate: Rate, lost: LostRatio) -> None:
        self._rate, self._lost = rate, lost
        self._readings: list[Reading] = []
        self._spans: list[Span] = []
        self._refused: Counter[str] = Counter()
        self._seconds = 0.0

    def take(self, reading: Reading) -> bool:
        """Is it decided with this one?"""
        if self._readings:
            self._seconds += reading.after_s - self._readings[-1].after_s
        self._readings.append(reading)
        while len(self._readings) > 1 and self._is_enough(self._readings[1:]):
            self._readings.pop(0)
        if not self._is_enough(self._readings):
            return False
        said = judge_span(self._readings, self._rate, self._lost)
        if isinstance(said, Span):
            self._spans.append(said)
        else:
            self._refused[said] += 1
        if isinstance(said, Span) or said == ON_THE_BOUND:  # else one would look till it fits
            self._readings = [reading]
        return self._agreed() is not None or len(self._spans) == MOST_SPANS

    def judgement(self) -> Judgement:
        """What is said after the last reading?"""
        verdict = self._agreed()
        return Judgement(
            verdict=verdict,
            reason="" if verdict else self._reason(),
            spans=tuple(self._spans),
            refused=dict(self._refused),
            seconds=self._seconds,
        )

    def _is_enough(self, readings: Sequence[Reading]) -> bool:
        return readings[-1].before_s - readings[0].after_s >= self._rate.span_s

    def _agreed(self) -> Verdict | None:
        verdicts = Counter(span.verdict for span in self._spans)
        return next((each for each, count in verdicts.items() if count >= AGREEING), None)

    def _reason(self) -> str:
        if len(self._spans) == MOST_SPANS:
            return "three spans say three things"
        looks = sum(self._refused.values())
        lacks = ", ".join(f"{what} in {count}" for what, count in self._refused.most_common())
        return (
            f"{len(self._spans)} of {AGREEING} spans in {self._seconds:.1f} s; "
            f"of {looks} looks {lacks or 'none was made'}"
        )
