"""Where do the steps of two runs differ: which part grew, which collective got slower?"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from broadgauge.traces.explanation import CollectiveTimes, StepPart, TraceExplanation
from broadgauge.traces.trace import CollectiveKind


@dataclass(frozen=True, slots=True, kw_only=True)
class PartChange:
    """One part of a step in both runs: seconds, and the share of its own step (0 to 1)."""

    part: str
    a_s: float | None
    b_s: float | None
    a_share_ratio: float | None
    b_share_ratio: float | None

    @property
    def difference_s(self) -> float | None:
        """B less A."""
        return None if self.a_s is None or self.b_s is None else self.b_s - self.a_s


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveChange:
    """Collectives of one kind and size in both runs; ratios are B over A."""

    kind: CollectiveKind
    message_bytes: int | None
    a_transfer_s: float
    b_transfer_s: float
    time_ratio: float | None
    busbw_ratio: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplanationComparison:
    """Two runs' steps side by side.

    Laws: `parts` are in the order of `StepPart`, and their differences add up to the steps'.
    """

    a: TraceExplanation
    b: TraceExplanation
    parts: tuple[PartChange, ...]
    collectives: tuple[CollectiveChange, ...]
    only_a: tuple[CollectiveTimes, ...]
    """Kinds and sizes that B has not."""
    only_b: tuple[CollectiveTimes, ...]

    @property
    def step_ratio(self) -> float:
        """B's step over A's."""
        return self.b.step_time_s / self.a.step_time_s


Key = tuple[CollectiveKind, int | None, str | None]


def compare_explanations(a: TraceExplanation, b: TraceExplanation) -> ExplanationComparison:
    """Parts by name, collectives by kind and size, whatever their groups are called."""
    of_a, of_b = _by_size(a.collectives), _by_size(b.collectives)
    parts_a, parts_b = _alike(a, b)
    return ExplanationComparison(
        a=a,
        b=b,
        parts=tuple(
            PartChange(
                part=part,
                a_s=parts_a[part],
                b_s=parts_b[part],
                a_share_ratio=_share(parts_a[part], a.step_time_s),
                b_share_ratio=_share(parts_b[part], b.step_time_s),
            )
            for part in map(str, StepPart)
        ),
        collectives=tuple(_change(key, of_a[key], of_b[key]) for key in of_a if key in of_b),
        only_a=tuple(one for key, each in of_a.items() if key not in of_b for one in each),
        only_b=tuple(one for key, each in of_b.items() if key not in of_a for one in each),
    )


def _alike(
    a: TraceExplanation, b: TraceExplanation
) -> tuple[Mapping[str, float | None], Mapping[str, float | None]]:
    """Where one side can't tell waiting from transfer, the other's are together, too."""
    parts = a.parts_s(), b.parts_s()
    waiting, exposed = str(StepPart.STRAGGLER_WAIT), str(StepPart.EXPOSED_COMMUNICATION)
    if parts[0][waiting] is None or parts[1][waiting] is None:
        for each in parts:
            each[exposed] = (each[exposed] or 0.0) + (each[waiting] or 0.0)
            each[waiting] = None
    return parts


def _share(value_s: float | None, step_s: float) -> float | None:
    return None if value_s is None else value_s / step_s


def _by_size(all_times: Sequence[CollectiveTimes]) -> dict[Key, list[CollectiveTimes]]:
    found: dict[Key, list[CollectiveTimes]] = defaultdict(list)
    for times in all_times:
        found[times.kind, times.message_bytes, times.dtype].append(times)
    return dict(found)


def _change(
    key: Key, a: Sequence[CollectiveTimes], b: Sequence[CollectiveTimes]
) -> CollectiveChange:
    time_a, time_b = _mean_transfer_s(a), _mean_transfer_s(b)
    busbw_a, busbw_b = _mean_busbw(a), _mean_busbw(b)
    return CollectiveChange(
        kind=key[0],
        message_bytes=key[1],
        a_transfer_s=time_a,
        b_transfer_s=time_b,
        time_ratio=time_b / time_a if time_a > 0 else None,
        busbw_ratio=busbw_b / busbw_a if busbw_a and busbw_b else None,
    )


def _mean_transfer_s(all_times: Sequence[CollectiveTimes]) -> float:
    """Over calls, not over groups."""
    calls = sum(times.calls_per_step_count for times in all_times)
    return sum(t.transfer_s * t.calls_per_step_count for t in all_times) / calls


def _mean_busbw(all_times: Sequence[CollectiveTimes]) -> float | None:
    known = [t.busbw_gbyte_per_s for t in all_times if t.busbw_gbyte_per_s is not None]
    return sum(known) / len(known) if known else None
