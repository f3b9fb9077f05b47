"""What does the profiler's trace of one rank say, whatever wrote it and however it was stored?

Times are whole nanoseconds, so that parts of a step add up exactly. Of one trace they are one
clock's; clocks of different ranks are never compared.
"""

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.int64]
"""`int64[n]`, nanoseconds."""
Numbers = npt.NDArray[np.int64]
"""`int64[n]`: identities of threads, streams, launches."""
Indices = npt.NDArray[np.int32]
"""`int32[n]`: positions in a tuple of names."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spans:
    """Things that took time, one an entry, in the order of their start.

    Laws: `start_ns` never falls; `start_ns <= end_ns`; `name` is a position in the trace's `names`.
    """

    start_ns: Times
    end_ns: Times
    name: Indices
    thread: Numbers
    """Of the CPU; of GPU work its stream."""

    def __len__(self) -> int:
        return len(self.start_ns)

    def only(self, chosen: npt.NDArray[np.bool_]) -> "Spans":
        """Those that a mask `bool[n]` names."""
        return Spans(
            start_ns=self.start_ns[chosen],
            end_ns=self.end_ns[chosen],
            name=self.name[chosen],
            thread=self.thread[chosen],
        )

    @classmethod
    def none(cls) -> Self:
        """No span at all."""
        empty = np.empty(0, dtype=np.int64)
        return cls(start_ns=empty, end_ns=empty, name=empty.astype(np.int32), thread=empty)


class GpuKind(IntEnum):
    """What the GPU did in a span."""

    KERNEL = 0
    COPY = 1
    """A copy by the driver: between host and GPU, or on one GPU."""
    FILL = 2
    """A memset."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GpuWork:
    """What ran on the GPU: kernels, copies, fills.

    Laws: all arrays have `spans`' length; `launch_ns` is −1 where no launch is in the trace,
    which only work that was launched before the trace began, or a trace without launches, has.
    """

    spans: Spans
    kind: npt.NDArray[np.int8]
    launch_ns: Times
    """When the CPU began the call that launched it: of a graph's kernels, the graph's launch."""
    launch_thread: Numbers
    shape: Numbers
    """Kernels of one name and one shape (grid, block) do the same work and have one number, which
    is the same on all ranks."""

    is_collective: npt.NDArray[np.bool_]
    """Kernels of NCCL: each has its `CollectiveCall`."""

    def __len__(self) -> int:
        return len(self.spans)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRange:
    """One `ProfilerStep#` on the CPU: what was called in it, not when the GPU did it."""

    number: int
    start_ns: int
    end_ns: int
    thread: int


class CollectiveKind(StrEnum):
    """What a collective does. All ranks of the symmetric ones send and receive alike."""

    ALL_REDUCE = "all_reduce"
    ALL_GATHER = "all_gather"
    REDUCE_SCATTER = "reduce_scatter"
    ALL_TO_ALL = "all_to_all"
    BROADCAST = "broadcast"
    REDUCE = "reduce"
    SEND_RECV = "send_recv"
    GATHER = "gather"
    SCATTER = "scatter"
    BARRIER = "barrier"
    OTHER = "other"

    @property
    def is_symmetric(self) -> bool:
        """No rank ends it before the last one has come: the shortest instance is the transfer."""
        return self in _SYMMETRIC


_SYMMETRIC = frozenset(
    {
        CollectiveKind.ALL_REDUCE,
        CollectiveKind.ALL_GATHER,
        CollectiveKind.REDUCE_SCATTER,
        CollectiveKind.ALL_TO_ALL,
        CollectiveKind.BARRIER,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveCall:
    """One rank's part in one collective: from when it began to spin until it was done.

    `(group, sequence)` is the same on all ranks of the group. `message_bytes` is the size S as
    nccl-tests defines it; None where the trace does not tell it (a graph's replay, old versions).
    """

    kind: CollectiveKind
    name: str
    """As the trace names it: the kernel, or Gloo's range."""
    group: str
    """The process group's name; empty where the trace does not tell it."""
    sequence: int
    """Its place among the group's collectives in this trace."""
    start_ns: int
    end_ns: int
    stream: int
    launch_ns: int
    """−1: unknown."""
    message_bytes: int | None
    dtype: str | None
    num_ranks: int | None
    ranks: tuple[int, ...] | None
    """Global ranks of the group; None where the trace leaves them out (large groups)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RankTrace:
    """What one rank's profiler recorded.

    Laws: steps are in order of time and do not overlap; of one number there is one. Spans of equal
    times, names and threads are there once, however often the file repeats them.
    """

    path: Path | None
    """Where it was read from; None for one that was made in memory."""
    rank: int | None
    """None where the file does not say: then it stands for itself."""
    world_size: int | None
    host: str | None
    """Where it ran, as the name of the file tells (`host_pid.time.pt.trace.json`)."""
    names: tuple[str, ...]
    steps: tuple[StepRange, ...]
    """Empty where the profiler was not told of steps."""
    gpu: GpuWork
    """Of length 0 where no GPU was traced: then the CPU's operators are the work."""
    calls: Spans
    """Operators on the CPU (`aten::mm`), nested. Beside GPU work only FSDP's copies and c10d's."""
    ranges: Spans
    """`record_function` ranges on the CPU but steps: DataLoader's and the user's own, nested."""
    collectives: tuple[CollectiveCall, ...]
    """In the order of their start."""

    @cached_property
    def has_gpu(self) -> bool:
        return len(self.gpu) > 0
