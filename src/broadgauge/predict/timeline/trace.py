"""What does a predicted step look like, piece by piece? For Perfetto, in Chrome's trace format."""

import json
from collections.abc import Sequence
from dataclasses import replace

from broadgauge.predict.case import TrainingCase
from broadgauge.predict.costs.compute import compute_costs
from broadgauge.predict.facts.columns import columns_of
from broadgauge.predict.facts.knowledge import Knowledge, default_knowledge
from broadgauge.predict.timeline.evaluation import select, structures, work_of
from broadgauge.predict.timeline.simulation import Event, Piece, Recorder, one, play
from broadgauge.predict.timeline.timeline import Stream

THREADS = {stream: number for number, stream in enumerate(Stream, start=1)}


def pieces_of(case: TrainingCase, knowledge: Knowledge | None = None) -> list[Piece]:
    """The pieces of one case's step, every layer and micro-batch. Raises InputError."""
    known = default_knowledge() if knowledge is None else knowledge
    columns = columns_of((case,), known)
    work = work_of(columns, compute_costs(columns, known))
    ((structure, cases),) = structures(columns, work).items()
    if structure.is_folded:
        micro_batches = int(work.counts["micro_batches"][0])
        structure = replace(structure, micro_batches=micro_batches, is_folded=False)
    recorder = Recorder()
    waits = case.storage_waits
    if waits is not None and waits.batch.value_s > 0:
        recorder.run(Stream.STORAGE, one(waits.batch.value_s), name="load a batch")
    structure.program(recorder, select(work, structure, cases))
    if waits is not None:
        for name, seconds in (
            ("load a batch", waits.unhidden.value_s),
            ("save, a step's share", waits.saving(waits.save.value_s)),
        ):
            everything = range(len(recorder.pieces))
            recorder.run(Stream.STORAGE, one(seconds), after=everything, name=name)
    return recorder.pieces


def simulate(case: TrainingCase, knowledge: Knowledge | None = None) -> list[Event]:
    """The same as events: the plain engine's answer. Raises InputError."""
    return play(pieces_of(case, knowledge))


def chrome_trace(events: Sequence[Event], title: str) -> str:
    """JSON for Perfetto or chrome://tracing: a process a stage, a thread a stream; microseconds.

    Source: Trace Event Format (Google, 2016), complete events and metadata events.
    """
    stages = sorted({event.lane[1] for event in events})
    names = [
        _metadata("process_name", stage, 0, f"{title}, stage {stage}" if len(stages) > 1 else title)
        for stage in stages
    ]
    names += [
        _metadata("thread_name", stage, number, stream.replace("_", " "))
        for stage in stages
        for stream, number in THREADS.items()
    ]
    spans = [
        {
            "ph": "X",
            "name": event.name,
            "pid": event.lane[1],
            "tid": THREADS[event.lane[0]],
            "ts": round(event.start_s * 1e6, 3),
            "dur": round((event.end_s - event.start_s) * 1e6, 3),
        }
        for event in events
        if event.end_s > event.start_s
    ]
    return json.dumps({"displayTimeUnit": "ms", "traceEvents": [*names, *spans]})


def _metadata(kind: str, process: int, thread: int, name: str) -> dict[str, object]:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}
