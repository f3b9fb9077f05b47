"""What does one file of the profiler say? Read once, in chunks, into columns."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from broadgauge.specs.errors import InputError
from broadgauge.traces.reading.chunks import CHUNK_BYTES, Head, decoded_chunks
from broadgauge.traces.reading.collectives import (
    IS_NCCL,
    SentBy,
    UnnumberedCall,
    calls_on_cpu,
    in_order,
    kind_named,
    sent_by,
)
from broadgauge.traces.reading.columns import (
    GPU_CATEGORIES,
    Numbered,
    SpanColumns,
    arguments_of,
    launches_of,
    spans_of,
    whole_number,
    whole_numbers,
)
from broadgauge.traces.reading.events import (
    EventDecoder,
    TraceDocument,
    TraceEvent,
    decode_document,
)
from broadgauge.traces.reading.files import host_of, opened, rank_of
from broadgauge.traces.trace import GpuWork, RankTrace, Spans, StepRange

_STEP = re.compile(r"^ProfilerStep#?\s*(\d{1,15})$")
_CALLS = ("cpu_op", "Operator")
_RANGES = ("user_annotation",)
_LAUNCH_ENDINGS = ("_runtime", "_driver", "Runtime")


def read_trace(path: Path, *, chunk_bytes: int = CHUNK_BYTES) -> RankTrace:
    """One rank's trace. Raises InputError: not there, no JSON, cut off, nothing in it."""
    columns, document = _read(path, chunk_bytes)
    if columns.num_dropped and not columns.has_gpu:
        columns, document = _read(path, chunk_bytes, is_of_gpu=False)
    trace = columns.trace(path)
    if not len(trace.gpu) and not len(trace.calls):
        raise InputError(
            f"`{path}` is a trace without operators and kernels",
            hint="profile with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]",
        )
    known = None if document is None else document.distributed
    rank = -1 if known is None else whole_number(known.rank)
    size = -1 if known is None else whole_number(known.world_size)
    return replace(
        trace,
        rank=rank if rank >= 0 else rank_of(path),
        world_size=size if size > 0 else None,
    )


def _read(
    path: Path, chunk_bytes: int, *, is_of_gpu: bool | None = None
) -> "tuple[_Columns, TraceDocument | None]":
    """`is_of_gpu`: whether operators of the CPU may be left out; None: as the file's head says.

    It says which GPUs the machine has, not whether they were traced.
    """
    columns, head, decoder = None, Head(), EventDecoder()
    with opened(path) as stream:
        for events in decoded_chunks(
            stream, decoder, head, repair=decoder.repaired, chunk_bytes=chunk_bytes
        ):
            if columns is None:
                has_gpus = bool(head.before) and bool(decode_document(head.around(b"}")).devices)
                columns = _Columns(is_of_gpu=has_gpus if is_of_gpu is None else is_of_gpu)
            columns.add(events)
        document = decode_document(head.around()) if head.before else None
    return columns or _Columns(is_of_gpu=False), document


class _KeptNames(dict[str, bool]):
    """Of operators beside kernels those that copy for FSDP or communicate: few in a hundred."""

    def __missing__(self, name: str) -> bool:
        kept = self[name] = name.startswith(("fsdp::", "FSDP::", "c10d::"))
        return kept


class _Sorted(dict[str, list[TraceEvent]]):
    """Events by what they are, found by their category; those of others in a list apart."""

    def __init__(self) -> None:
        super().__init__()
        self.gpu: list[TraceEvent] = []
        self.launches: list[TraceEvent] = []
        self.calls: list[TraceEvent] = []
        self.ranges: list[TraceEvent] = []
        self.others: list[TraceEvent] = []

    def __missing__(self, category: str) -> list[TraceEvent]:
        if category in GPU_CATEGORIES:
            found = self.gpu
        elif category in _CALLS:
            found = self.calls
        elif category in _RANGES:
            found = self.ranges
        else:
            found = self.launches if category.endswith(_LAUNCH_ENDINGS) else self.others
        self[category] = found
        return found


class _Columns:
    """What was read so far."""

    def __init__(self, *, is_of_gpu: bool) -> None:
        self.is_of_gpu = is_of_gpu
        self.num_dropped = 0
        self.has_gpu = False
        self._kept = _KeptNames()
        self.name, self.thread, self.sent = Numbered(), Numbered(), Numbered()
        self.gpu = SpanColumns(kind="i1", correlation="i8", shape="i8", sent="i4")
        self.launches = SpanColumns(correlation="i8")
        self.calls, self.ranges = SpanColumns(), SpanColumns()
        self._is_nccl: dict[str, bool] = {}
        self._sent_of: dict[str, int] = {}

    def add(self, events: Sequence[TraceEvent]) -> None:
        found = _Sorted()
        for event in events:
            found[event.cat].append(event)
        calls = found.calls
        if self.is_of_gpu:
            kept = self._kept
            calls = [event for event in calls if kept[event.name]]
            self.num_dropped += len(found.calls) - len(calls)
        self.calls.add(spans_of(calls), self.name, self.thread)
        self.ranges.add(spans_of(found.ranges), self.name, self.thread)
        self._add_launches(spans_of(found.launches))
        self._add_gpu(spans_of(found.gpu))

    def _add_launches(self, events: Sequence[TraceEvent]) -> None:
        numbers = whole_numbers([arguments_of(event).correlation for event in events])
        self.launches.add(events, self.name, self.thread, correlation=numbers)

    def _add_gpu(self, events: Sequence[TraceEvent]) -> None:
        self.has_gpu |= bool(events)
        self.gpu.add(
            events,
            self.name,
            self.thread,
            kind=[GPU_CATEGORIES[event.cat] for event in events],
            correlation=whole_numbers([arguments_of(event).correlation for event in events]),
            shape=[_shape(event) for event in events],
            sent=[self._sent(event) for event in events],
        )

    def _sent(self, event: TraceEvent) -> int:
        """Which of the things that collectives send; −1 for what is no collective."""
        is_nccl = self._is_nccl.get(event.name)
        if is_nccl is None:
            is_nccl = self._is_nccl.setdefault(event.name, bool(IS_NCCL.match(event.name)))
        if not is_nccl:
            return -1
        told = arguments_of(event)
        facts = (told.collective, told.elements_in, told.elements_out, told.group_size)
        key = str((*facts, told.dtype, told.group, told.group_ranks))
        found = self._sent_of.get(key)
        if found is None:
            found = self._sent_of[key] = self.sent[sent_by(told)]
        return found

    def trace(self, path: Path) -> RankTrace:
        names = tuple(self.name)
        gpu, columns = self.gpu.arrange()
        launches, of_launches = self.launches.arrange()
        calls, _ = self.calls.arrange()
        ranges, _ = self.ranges.arrange()
        launch, launch_thread = launches_of(
            columns["correlation"], launches, of_launches["correlation"]
        )
        work = GpuWork(
            spans=gpu,
            kind=columns["kind"],
            launch_ns=launch,
            launch_thread=launch_thread,
            shape=columns["shape"],
            is_collective=columns["sent"] >= 0,
        )
        steps, others = _steps(ranges, names)
        collectives = _collectives(work, columns["sent"], tuple(self.sent), names)
        return RankTrace(
            path=path,
            rank=None,
            world_size=None,
            host=host_of(path),
            names=names,
            steps=steps,
            gpu=work,
            calls=calls,
            ranges=others,
            collectives=in_order(collectives + calls_on_cpu(others, calls, names)),
        )


@lru_cache(maxsize=1 << 16)
def _shape_number(name: str, grid: tuple[object, ...], block: tuple[object, ...]) -> int:
    """The same in every process, as Python's own hash is not."""
    text = f"{name}\0{grid}\0{block}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big", signed=True)


def _shape(event: TraceEvent) -> int:
    arguments = arguments_of(event)
    try:
        return _shape_number(event.name, tuple(arguments.grid), tuple(arguments.block))
    except TypeError:  # none, or no lists of numbers
        return _shape_number(event.name, (str(arguments.grid),), (str(arguments.block),))


def _steps(ranges: Spans, names: tuple[str, ...]) -> tuple[tuple[StepRange, ...], Spans]:
    """The profiler's steps, and all other ranges.

    Steps that overlap are no steps (two profilers, or a name of the user's own): then there are
    none. Of one number the longest counts.
    """
    numbers = np.array([int(m[1]) if (m := _STEP.match(name)) else -1 for name in names] or [-1])
    number = numbers[ranges.name] if len(ranges) else np.empty(0, dtype=np.int64)
    longest: dict[int, StepRange] = {}
    for place in np.flatnonzero(number >= 0):
        step = StepRange(
            number=int(number[place]),
            start_ns=int(ranges.start_ns[place]),
            end_ns=int(ranges.end_ns[place]),
            thread=int(ranges.thread[place]),
        )
        before = longest.get(step.number, step)
        if step.end_ns - step.start_ns >= before.end_ns - before.start_ns:
            longest[step.number] = step
    steps = sorted(longest.values(), key=lambda step: step.start_ns)
    overlaps = any(a.end_ns > b.start_ns for a, b in pairwise(steps))
    return (() if overlaps else tuple(steps)), ranges.only(number < 0)


def _collectives(
    work: GpuWork, sent: npt.NDArray[np.int32], all_sent: Sequence[SentBy], names: Sequence[str]
) -> list[UnnumberedCall]:
    spans = work.spans
    kinds = {name: kind_named(name) for name in {names[index] for index in spans.name[sent >= 0]}}
    return [
        UnnumberedCall(
            name=names[spans.name[place]],
            kind=all_sent[sent[place]].kind or kinds[names[spans.name[place]]],
            start_ns=int(spans.start_ns[place]),
            end_ns=int(spans.end_ns[place]),
            stream=int(spans.thread[place]),
            launch_ns=int(work.launch_ns[place]),
            sent=all_sent[sent[place]],
        )
        for place in np.flatnonzero(sent >= 0)
    ]
