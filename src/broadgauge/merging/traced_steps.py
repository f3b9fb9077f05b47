"""Where did the time of a trial's traced steps go? Read from the traces that its ranks left."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from broadgauge.merging.rank_blocks import RankBlocks
from broadgauge.messages.rank import Artifact, TraceProblem
from broadgauge.specs.errors import BroadgaugeError
from broadgauge.specs.traced_steps import (
    MOST_TRACED_COLLECTIVES,
    MOST_TRACED_RANKS,
    TracedCollective,
    TracedRank,
    TracedSteps,
    TracedStraggler,
)

if TYPE_CHECKING:  # trials without traces do without the reader's libraries
    from broadgauge.traces.explanation import RankExplanation, TraceExplanation


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedTrial:
    """What the record keeps, and the rows of the picture (traces/timeline.py), if any."""

    steps: TracedSteps
    timeline: tuple[tuple[float, ...], ...] = ()


def traced_steps(
    said: Sequence[RankBlocks],
    left: Sequence[Artifact],
    timed_step_s: float | None,
    *,
    ranks_per_node: int,
) -> TracedTrial:
    """`timed_step_s`: the trial's own, to tell what tracing costs; None: it has none."""
    problems = [each.message for rank in said for each in rank.of(TraceProblem)]
    traces = [Path(each.path) for each in left if each.kind == "trace"]
    away = [path for path in traces if not path.is_file()]
    if away:
        problems.append(
            f"{len(away)} traces stayed on the machines of their ranks, such as {away[0]}"
        )
    here = [path for path in traces if path not in away]
    if not here:
        return _untraced("; ".join(problems) or "no rank left a trace")
    try:
        found = _explained(here, ranks_per_node)
    except ImportError as error:
        hint = "pip install 'broadgauge[traces]', then broadgauge explain RUN"
        return _untraced(f"{error.name} is not installed: {hint}")
    except BroadgaugeError as error:
        return _untraced("; ".join([*problems, str(error)]))
    steps = stored(found, timed_step_s, notes=problems)
    return TracedTrial(steps=steps, timeline=_timeline(found))


def _untraced(problem: str) -> TracedTrial:
    return TracedTrial(steps=TracedSteps(problem=problem))


def _timeline(found: "TraceExplanation") -> tuple[tuple[float, ...], ...]:
    from broadgauge.traces.timeline import MOST_STORED_PIECES, timeline_of

    rows = timeline_of(found).thinned(MOST_STORED_PIECES).rows()
    return tuple(map(tuple, rows.tolist()))


def _explained(paths: Sequence[Path], ranks_per_node: int) -> "TraceExplanation":
    from broadgauge.traces.attribution.explaining import explain
    from broadgauge.traces.reading.reader import read_trace

    return explain((read_trace(path) for path in paths), ranks_per_node=ranks_per_node)


def stored(
    found: "TraceExplanation", timed_step_s: float | None, *, notes: Sequence[str] = ()
) -> TracedSteps:
    """As a record keeps it."""
    ranks = tuple(_rank(each, found.num_steps) for each in found.ranks)
    step_s, parts_s = found.step_time_s, found.parts_s()
    has_gpu = all(rank.has_gpu for rank in found.ranks)
    return TracedSteps(
        notes=(*found.notes, *notes),
        traces_count=len(ranks),
        steps_count=found.num_steps,
        step_time_s=step_s,
        tracing_overhead_ratio=step_s / timed_step_s if timed_step_s else None,
        parts_s=parts_s,
        exposed_by_network_s=found.exposed_by_network_s(),
        overlapped_communication_s=found.overlapped_communication_s,
        compute_slowdown_s=found.compute_slowdown_s,
        compute_ratio=(parts_s["compute"] or 0.0) / step_s,
        gpu_busy_ratio=_gpu_busy_s(found) / step_s if has_gpu else None,
        is_all_ranks=found.is_all_ranks,
        ranks=ranks[:MOST_TRACED_RANKS],
        stragglers=tuple(
            TracedStraggler(rank=each.rank, delay_s=each.delay_s, cause=each.cause)
            for each in found.stragglers[:MOST_TRACED_RANKS]
        ),
        collectives=_collectives(found),
    )


def _rank(rank: "RankExplanation", num_steps: int) -> TracedRank:
    return TracedRank(
        rank=rank.rank or 0, step_time_s=rank.step_time_s, parts_s=rank.parts.seconds(num_steps)
    )


def _gpu_busy_s(found: "TraceExplanation") -> float:
    """Of one step, the mean over ranks."""
    steps = [step for rank in found.ranks for step in rank.steps]
    return sum(step.gpu_busy_ns for step in steps) / 1e9 / len(steps)


def _collectives(found: "TraceExplanation") -> tuple[TracedCollective, ...]:
    most_exposed = sorted(found.collectives, key=lambda each: -each.exposed_s)
    return tuple(
        TracedCollective(
            kind=str(each.kind),
            group=each.group,
            ranks_count=each.num_ranks,
            nodes_count=each.num_nodes,
            message_bytes=each.message_bytes,
            dtype=each.dtype,
            calls_per_step_count=each.calls_per_step_count,
            time_s=each.time_s,
            transfer_s=each.transfer_s,
            exposed_s=each.exposed_s,
            busbw_gbyte_per_s=each.busbw_gbyte_per_s,
        )
        for each in most_exposed[:MOST_TRACED_COLLECTIVES]
    )
