"""How are millions of events kept? As columns, chunk by chunk: some 40 bytes an event."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from broadgauge.traces.reading.events import EventArguments, TraceEvent
from broadgauge.traces.trace import GpuKind, Spans, Times

LARGEST_TIME_US = 9e15
"""Beyond it nanoseconds do not fit into 64 bits; the clock of 1970 is at 1.8e15."""
GPU_CATEGORIES = {
    "kernel": GpuKind.KERNEL,
    "Kernel": GpuKind.KERNEL,
    "gpu_memcpy": GpuKind.COPY,
    "Memcpy": GpuKind.COPY,
    "gpu_memset": GpuKind.FILL,
    "Memset": GpuKind.FILL,
}
"""The second of each as torch wrote it before 1.12."""
_NOTHING = EventArguments()


class Numbered(dict[Any, int]):
    """Things get numbers in the order in which they are first seen: `numbered[thing]`."""

    def __missing__(self, thing: Any) -> int:
        number = self[thing] = len(self)
        return number


@dataclass
class Column:
    """One column of numbers, in pieces."""

    dtype: str
    pieces: list[npt.NDArray[Any]] = field(default_factory=list)

    def add(self, values: Sequence[Any] | npt.NDArray[Any]) -> None:
        self.pieces.append(np.array(values, dtype=self.dtype))

    def whole(self) -> npt.NDArray[Any]:
        """All pieces as one; they are given up, so that both are not held."""
        found = np.concatenate(self.pieces) if self.pieces else np.empty(0, dtype=self.dtype)
        self.pieces = []
        return found


class SpanColumns:
    """Columns of one kind of event, with as many more as the kind needs."""

    def __init__(self, **more: str) -> None:
        columns = {"start": "f8", "length": "f8", "name": "i4", "thread": "i8", **more}
        self.columns = {name: Column(dtype) for name, dtype in columns.items()}

    def add(
        self, events: Sequence[TraceEvent], names: Numbered, threads: Numbered, **more: Any
    ) -> None:
        values = {
            "start": [event.ts for event in events],
            "length": [event.dur for event in events],
            "name": [names[event.name] for event in events],
            "thread": thread_numbers(events, threads),
            **more,
        }
        for name, column in self.columns.items():
            column.add(values[name])

    def arrange(self) -> tuple[Spans, dict[str, npt.NDArray[Any]]]:
        """Sorted by start, longest first, each once; and the other columns in the same order."""
        columns = {name: column.whole() for name, column in self.columns.items()}
        start = np.rint(columns.pop("start") * 1e3).astype(np.int64)
        end = start + np.rint(columns.pop("length") * 1e3).astype(np.int64)
        name, thread = columns.pop("name"), columns.pop("thread")
        order = _order(start, end, name, thread)
        start, end, name, thread = start[order], end[order], name[order], thread[order]
        is_new = np.ones(len(order), dtype=bool)
        is_new[1:] = (start[1:] != start[:-1]) | (end[1:] != end[:-1])
        is_new[1:] |= (name[1:] != name[:-1]) | (thread[1:] != thread[:-1])
        spans = Spans(start_ns=start, end_ns=end, name=name, thread=thread)
        if not is_new.all():
            spans = spans.only(is_new)
        return spans, {key: column[order][is_new] for key, column in columns.items()}


def _order(start: Times, end: Times, name: npt.NDArray[np.int32], thread: Times) -> Times:
    """By start, then the longest first; those alike in both side by side where they are the same.

    Files are nearly sorted and few spans begin at once: only these are compared in all columns.
    """
    order = np.argsort(start, kind="stable")
    is_tied = np.zeros(len(order) + 1, dtype=bool)
    is_tied[1:-1] = start[order[1:]] == start[order[:-1]]
    places = np.flatnonzero(is_tied[1:] | is_tied[:-1])
    tied = order[places]
    order[places] = tied[np.lexsort((name[tied], thread[tied], -end[tied], start[tied]))]
    return order


def whole_numbers(values: Sequence[Any]) -> Sequence[int] | npt.NDArray[np.int64]:
    """Of an event's `args` each; mostly all are numbers."""
    if all(type(value) is int for value in values):
        try:
            return np.array(values, dtype=np.int64)
        except OverflowError:
            pass
    return [whole_number(value) for value in values]


def thread_numbers(events: Sequence[TraceEvent], threads: Numbered) -> list[int]:
    """A number a process and thread, whatever they are called."""
    try:
        return [threads[event.pid, event.tid] for event in events]
    except TypeError:  # a list or an object, which is no identity
        return [threads[str(event.pid), str(event.tid)] for event in events]


def spans_of(events: Sequence[TraceEvent]) -> list[TraceEvent]:
    """The complete ones, whose times can be computed with."""
    return [
        event
        for event in events
        if event.ph == "X"
        and 0.0 <= event.dur < LARGEST_TIME_US
        and -LARGEST_TIME_US < event.ts < LARGEST_TIME_US
    ]


def arguments_of(event: TraceEvent) -> EventArguments:
    return _NOTHING if event.args is None else event.args


def whole_number(value: Any, default: int = -1) -> int:
    """A number of an event's `args`, which may be anything: text, a float, missing."""
    if isinstance(value, int):
        return value if abs(value) < 1 << 62 else default
    if isinstance(value, float):
        return int(value) if math.isfinite(value) and abs(value) < 1 << 62 else default
    if isinstance(value, str) and value.lstrip("-").isdecimal() and len(value) < 19:
        return int(value)
    return default


def launches_of(
    correlations: npt.NDArray[np.int64], calls: Spans, of_calls: npt.NDArray[np.int64]
) -> tuple[Times, npt.NDArray[np.int64]]:
    """When and from which thread was each launched? −1 where no call of that number is there."""
    order = np.argsort(of_calls, kind="stable")
    known = of_calls[order]
    places = np.searchsorted(known, correlations)
    places = np.minimum(places, max(0, len(known) - 1))
    if len(known) == 0:
        missing = np.full(len(correlations), -1, dtype=np.int64)
        return missing, missing
    is_found = (known[places] == correlations) & (correlations > 0)
    chosen = order[places]
    return (
        np.where(is_found, calls.start_ns[chosen], -1),
        np.where(is_found, calls.thread[chosen], -1),
    )
