"""What was measured without the profiler that belongs beside a case's traces?

The same path's busbw in the collectives probe, and the same trial's step with communication off.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from broadgauge.results.model import CaseSummary, RunSummary
from broadgauge.specs.case import Case
from broadgauge.specs.record import Record

Curve = tuple[tuple[int, float], ...]
"""Message bytes and busbw in GB/s, sizes rising."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbedPath:
    """What one network carried in the collectives probe, between so many ranks."""

    source: str
    """The run and the case: for people."""
    num_ranks: int
    curves: Mapping[str, Curve]
    """By collective."""

    def busbw_gbyte_per_s(
        self, op: str, message_bytes: int | None, num_ranks: int | None
    ) -> float | None:
        """At this size, on a straight line between the logarithms of two that were measured.

        Above the largest size its busbw, which no longer rises with size; None below the smallest,
        for other groups than all ranks, and where size or ranks are unknown.
        """
        curve = self.curves.get(op, ())
        if message_bytes is None or num_ranks != self.num_ranks or not curve:
            return None
        if message_bytes >= curve[-1][0]:
            return curve[-1][1]
        for (low, low_busbw), (high, high_busbw) in pairwise(curve):
            if low <= message_bytes < high:
                share = math.log(message_bytes / low) / math.log(high / low)
                return low_busbw * math.pow(high_busbw / low_busbw, share)
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunicationOff:
    """One trial's timed steps, and the same steps without communication, interleaved."""

    step_time_s: float
    step_without_communication_s: float

    @property
    def network_cost_s(self) -> float:
        return self.step_time_s - self.step_without_communication_s


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredBeside:
    """None of each: it was not measured, or it can't be told which one belongs to the traces."""

    probe: ProbedPath | None = None
    off: CommunicationOff | None = None
    notes: tuple[str, ...] = field(default=())
    """Why a reference that was named says nothing."""


NOTHING_BESIDE = MeasuredBeside()


def communication_off(record: Record) -> CommunicationOff | None:
    """None: the trial had no steps without communication, as those of a command."""
    on_s, off_s = (
        record.metrics.get(name) for name in ("step_time_s", "step_without_communication_s")
    )
    if on_s is None or off_s is None:
        return None
    return CommunicationOff(step_time_s=on_s, step_without_communication_s=off_s)


def probed_path(run: RunSummary, case: Case) -> ProbedPath | None:
    """The collectives of the same run on the case's network, by the same ranks and variables."""
    return _path(run, (each for each in _probed(run) if _is_same_path(each.case, case)))


def reference_path(run: RunSummary, case: Case | None) -> tuple[ProbedPath | None, str | None]:
    """As `probed_path`, of another run; and why there is none.

    There the network's name and the number of ranks tell; traces that belong to no case are of the
    one network that the run has.
    """
    probed = _probed(run)
    if case is not None:
        name, ranks = case.plain_network_name, case.world_size
        probed = [
            each
            for each in probed
            if (each.case.plain_network_name, each.case.world_size) == (name, ranks)
        ]
        missing = f"{run.folder.name} has no collectives of {ranks} ranks on {name}"
    else:
        missing = f"{run.folder.name} has no collectives"
    places = {(each.case.plain_network_name, each.case.ranks) for each in probed}
    if len(places) > 1:
        return None, (
            f"{run.folder.name} has collectives on {len(places)} networks and shapes, and the "
            "traces do not tell which one is theirs"
        )
    path = _path(run, probed)
    return path, missing if path is None else None


def _probed(run: RunSummary) -> list[CaseSummary]:
    return [each for each in run.cases if each.collectives and not each.pairs]


def _is_same_path(probed: Case, case: Case) -> bool:
    places = [(each.plain_network_name, each.ranks, each.environment) for each in (probed, case)]
    return places[0] == places[1]


def _path(run: RunSummary, probed: Iterable[CaseSummary]) -> ProbedPath | None:
    """Of several measurements of a size (types, engines) the fastest: what the path reached."""
    cases: Sequence[CaseSummary] = list(probed)
    best: dict[str, dict[int, float]] = {}
    for row in (row for each in cases for row in each.collectives):
        sizes = best.setdefault(row.op, {})
        busbw = row.busbw_gbyte_per_s.value
        if busbw > 0 and row.size_bytes > 0:
            sizes[row.size_bytes] = max(sizes.get(row.size_bytes, 0.0), busbw)
    if not any(best.values()):
        return None
    return ProbedPath(
        source=f"{run.folder.name}: {cases[0].case.label}",
        num_ranks=cases[0].case.world_size,
        curves={op: tuple(sorted(sizes.items())) for op, sizes in best.items()},
    )
