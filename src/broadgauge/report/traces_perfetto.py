"""How does an explained trace look in Perfetto? The attribution as a track above what ran."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from broadgauge.traces.explanation import RankStep, StepPart, TraceExplanation
from broadgauge.traces.trace import RankTrace

_STEPS, _PARTS, _COLLECTIVES, _FIRST_STREAM = 1, 2, 3, 4
_PART_NAMES = {part: str(part).replace("_", " ") for part in StepPart}


def perfetto_events(traces: Sequence[RankTrace], found: TraceExplanation) -> Iterator[str]:
    """The JSON of one file, piece by piece: a process a rank; microseconds.

    Ranks' clocks are not one: each rank's times begin at its own first step. Source: Trace Event
    Format (Google, 2016), complete events and metadata events.
    """
    yield '{"displayTimeUnit": "ms", "traceEvents": [\n'
    separator = ""
    by_rank = {trace.rank: trace for trace in traces}
    for place, rank in enumerate(found.ranks):
        trace = by_rank.get(rank.rank, traces[place])
        for event in _of_rank(trace, rank.steps, place, f"rank {rank.rank or 0}"):
            yield separator + json.dumps(event)
            separator = ",\n"
    yield "\n]}\n"


def _of_rank(
    trace: RankTrace, steps: Sequence[RankStep], process: int, title: str
) -> Iterator[dict[str, Any]]:
    begin, end = steps[0].start_ns, steps[-1].end_ns
    yield _metadata("process_name", process, 0, title)
    for thread, name in ((_STEPS, "steps"), (_PARTS, "where the time went")):
        yield _metadata("thread_name", process, thread, name)
    yield _metadata("thread_name", process, _COLLECTIVES, "collectives")
    for step in steps:
        name = f"step {step.number}, bound by the {step.bound_by.upper()}"
        yield _span(name, process, _STEPS, (step.start_ns - begin, step.end_ns - begin))
        yield from _parts(step, process, begin)
    for call in trace.collectives:
        if begin <= call.start_ns < end:
            told = {"bytes": call.message_bytes, "group": call.group, "sequence": call.sequence}
            times = (call.start_ns - begin, call.end_ns - begin)
            yield _span(str(call.kind), process, _COLLECTIVES, times, told)
    yield from _gpu(trace, process, begin, end)


def _parts(step: RankStep, process: int, begin_ns: int) -> Iterator[dict[str, Any]]:
    parts = tuple(StepPart)
    line = step.timeline
    edges = (line.edges_ns - begin_ns).tolist()
    for place, (part, name) in enumerate(zip(line.part.tolist(), line.name.tolist(), strict=True)):
        told = {"in": line.names[name]} if name >= 0 else {}
        times = (edges[place], edges[place + 1])
        yield _span(_PART_NAMES[parts[part]], process, _PARTS, times, told)


def _gpu(trace: RankTrace, process: int, begin: int, end: int) -> Iterator[dict[str, Any]]:
    spans = trace.gpu.spans
    inside = spans.only((spans.start_ns < end) & (spans.end_ns > begin))
    threads = {
        stream: _FIRST_STREAM + n for n, stream in enumerate(sorted(set(inside.thread.tolist())))
    }
    for number, thread in enumerate(threads.values(), start=1):
        yield _metadata("thread_name", process, thread, f"GPU stream {number}")
    columns = (inside.start_ns - begin, inside.end_ns - begin, inside.name, inside.thread)
    for start, stop, name, stream in zip(*(column.tolist() for column in columns), strict=True):
        yield _span(trace.names[name], process, threads[stream], (start, stop))


def _span(
    name: str,
    process: int,
    thread: int,
    times_ns: tuple[int, int],
    told: dict[str, Any] | None = None,
) -> dict[str, Any]:
    start, end = times_ns
    event = {"ph": "X", "name": name, "pid": process, "tid": thread}
    return (
        event | {"ts": start / 1e3, "dur": (end - start) / 1e3} | ({"args": told} if told else {})
    )


def _metadata(kind: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}
