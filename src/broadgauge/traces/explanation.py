"""What is said of a job's steps: which share was compute, communication, waiting, idle?"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import numpy as np
import numpy.typing as npt

from broadgauge.traces.trace import CollectiveKind, Times
from broadgauge.traces.tracks import Track, TrackPieces


class StepPart(StrEnum):
    """What a moment of a step goes to; each goes to one. In the order in which bars are stacked."""

    COMPUTE = "compute"
    """A kernel runs that is neither communication nor one of FSDP's copies."""
    FSDP_COPIES = "fsdp_copies"
    """FSDP2 copies parameters or gradients between its buffers, and nothing computes."""
    EXPOSED_COMMUNICATION = "exposed_communication"
    """Communication runs, and nothing computes or copies; of one trace alone an upper bound."""
    STRAGGLER_WAIT = "straggler_wait"
    """As exposed communication, but all collectives that run wait for a rank that is late."""
    DATA_WAIT = "data_wait"
    """Nothing runs, and the rank is in its data loader or under a name with load, data, batch."""
    CHECKPOINT = "checkpoint"
    """Nothing runs, and the rank is under a name with checkpoint or save."""
    HOST_IDLE = "host_idle"
    """Nothing runs, because the CPU has not launched it yet."""
    OTHER = "other"
    """Copies between host and GPU that nothing hides, gaps between kernels launched in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartTimes:
    """How long each part took, of one step or of several together, in whole nanoseconds.

    Law: `straggler_wait_ns` is None where ranks were not compared; all parts add up to the time of
    the steps they are of, exactly.
    """

    compute_ns: int
    fsdp_copies_ns: int
    exposed_communication_ns: int
    straggler_wait_ns: int | None
    data_wait_ns: int
    checkpoint_ns: int
    host_idle_ns: int
    other_ns: int

    def of(self, part: StepPart) -> int | None:
        """The time of one part."""
        value: int | None = getattr(self, f"{part}_ns")
        return value

    @property
    def total_ns(self) -> int:
        return sum(self.of(part) or 0 for part in StepPart)

    def seconds(self, num_steps: int) -> dict[str, float | None]:
        """Each part's mean over so many steps."""
        found = {str(part): self.of(part) for part in StepPart}
        return {
            part: None if time_ns is None else time_ns / 1e9 / num_steps
            for part, time_ns in found.items()
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepTimeline:
    """What each moment of a step went to: the bar as a line in time.

    Laws: n pieces touch each other, from the step's begin to its end: `edges_ns` is `int64[n + 1]`
    and rises; `part` is `int8[n]`, positions in `tuple(StepPart)`; `name` is `int32[n]`, positions
    in `names`, the range that a piece bears the name of, −1 for none.
    """

    edges_ns: Times
    part: npt.NDArray[np.int8]
    name: npt.NDArray[np.int32]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankStep:
    """One step of one rank: from the end of the last step's work to the end of its own.

    `bound_by` is who ended it: the GPU, whose work goes on after the CPU has left the step, or the
    CPU, which leaves it later. Law: `parts.total_ns == end_ns - start_ns`.
    """

    number: int
    start_ns: int
    end_ns: int
    bound_by: Literal["gpu", "cpu"]
    parts: PartTimes
    timeline: StepTimeline
    overlapped_communication_ns: int
    """Communication ran while something computed or copied."""
    gpu_busy_ns: int
    """Any kernel or copy ran: what utilisation counts, spinning collectives too."""
    hidden_ns: Mapping[str, int]
    """By part, CPU time in data loader or checkpoint while other work ran: no part of the step."""
    idle_names_ns: Mapping[str, int]
    """Time with nothing running, by the innermost range that the CPU was under."""

    @property
    def duration_ns(self) -> int:
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class RankExplanation:
    """The steps of one rank. `parts` is of all of them together."""

    rank: int | None
    host: str | None
    source: str
    steps: tuple[RankStep, ...]
    parts: PartTimes
    compute_slowdown_ns: int | None
    """What kernels took longer for running beside communication, all steps together.

    None: no kernel ran both beside communication and without.
    """
    has_gpu: bool
    tracks: Mapping[Track, TrackPieces]
    """What it did when, from its first step on; a track without a piece is left out."""

    @property
    def step_time_s(self) -> float:
        """The mean over its steps."""
        return sum(step.duration_ns for step in self.steps) / 1e9 / len(self.steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Straggler:
    """A rank that others wait for: how long they do a step, and what it does meanwhile."""

    rank: int
    delay_s: float
    cause: str
    """The part in which it spends more than the others; `unknown` if none explains half of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveTimes:
    """Collectives of one kind, group and size, over all steps and ranks.

    `transfer_s` is the mean of the shortest instance of each; without other ranks' traces the mean
    of a whole kernel, waiting and all: an upper bound.
    """

    kind: CollectiveKind
    group: str
    num_ranks: int | None
    num_nodes: int | None
    """Over how many hosts its ranks are; None: unknown."""
    message_bytes: int | None
    dtype: str | None
    calls_per_step_count: float
    time_s: float
    """Mean of a rank's call, with its waiting."""
    transfer_s: float
    waiting_s: float | None
    exposed_s: float
    """A step's mean over ranks, of `exposed_communication`; shared evenly where two kinds run."""
    busbw_gbyte_per_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstReduction:
    """The first gradients that the backward pass sends, on the first rank; means over its steps."""

    kind: CollectiveKind
    name: str
    message_bytes: int | None
    after_begin_s: float
    """From the step's begin to when it began to spin."""
    time_s: float
    transfer_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceExplanation:
    """Where the time of a job's steps went.

    Laws: `ranks` are in the order of their number; all have the same `step_numbers`. With one
    rank's trace every `straggler_wait_ns` is None and exposed communication is an upper bound.
    """

    ranks: tuple[RankExplanation, ...]
    step_numbers: tuple[int, ...]
    is_all_ranks: bool
    """The traces of all ranks that the collectives are among are there."""
    has_steps: bool
    """False where the profiler was not told of steps: all of the trace is taken for one."""
    stragglers: tuple[Straggler, ...]
    collectives: tuple[CollectiveTimes, ...]
    first_reduction: FirstReduction | None
    notes: tuple[str, ...]
    """What a reader must know beside the figures."""

    @property
    def num_steps(self) -> int:
        return len(self.step_numbers)

    @property
    def step_time_s(self) -> float:
        """The mean over ranks and steps."""
        return sum(rank.step_time_s for rank in self.ranks) / len(self.ranks)

    def parts_s(self) -> dict[str, float | None]:
        """A step's parts, the mean over ranks and steps; they add up to `step_time_s`."""
        each = [rank.parts.seconds(self.num_steps) for rank in self.ranks]
        return {part: _mean([parts[part] for parts in each]) for part in map(str, StepPart)}

    @property
    def overlapped_communication_s(self) -> float:
        """A step's communication that ran while something computed or copied: mean over ranks."""
        steps = [step for rank in self.ranks for step in rank.steps]
        return sum(step.overlapped_communication_ns for step in steps) / 1e9 / len(steps)

    @property
    def compute_slowdown_s(self) -> float | None:
        """A step's, the mean over the ranks where it can be told."""
        known = [r.compute_slowdown_ns for r in self.ranks if r.compute_slowdown_ns is not None]
        return sum(known) / 1e9 / self.num_steps / len(known) if known else None

    def exposed_by_network_s(self) -> dict[str, float]:
        """Of a step's exposed communication, what groups within a node and across nodes have.

        `unknown` is that of groups whose ranks' nodes are not known. They add up to the part.
        """
        found = {"inside_nodes": 0.0, "between_nodes": 0.0, "unknown": 0.0}
        for each in self.collectives:
            key = "inside_nodes" if each.num_nodes == 1 else "between_nodes"
            found["unknown" if each.num_nodes is None else key] += each.exposed_s
        return found


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if len(known) == len(values) else None
