"""What is kept in a record of where the traced steps' time went?

Small, since a record is one line; the traces themselves are artifacts of the trial, and
`broadgauge explain RUN` reads them again.
"""

from pydantic import Field

from broadgauge.specs.base import StoredModel

TIMELINE_SERIES = "traced_timeline"
"""Of a traced trial: rows of its picture, what each rank did when (traces/timeline.py)."""
MOST_TRACED_RANKS = 64
MOST_TRACED_COLLECTIVES = 24


class TracedRank(StoredModel):
    """One rank's mean step."""

    rank: int
    step_time_s: float
    parts_s: dict[str, float | None]
    """By part (traces/explanation.py, `StepPart`); they add up to the step."""


class TracedStraggler(StoredModel):
    rank: int
    delay_s: float
    """How long the others wait for it, a step."""
    cause: str
    """The part in which it spends more than the others, or `unknown`."""


class TracedCollective(StoredModel):
    """Collectives of one kind, group and size."""

    kind: str
    group: str
    ranks_count: int | None = None
    nodes_count: int | None = None
    message_bytes: int | None = None
    dtype: str | None = None
    calls_per_step_count: float
    time_s: float
    """Mean of a rank's call, with its waiting."""
    transfer_s: float
    """Mean of the shortest instances; of one rank's trace an upper bound, waiting and all."""
    exposed_s: float
    """Of a step, what nothing hides."""
    busbw_gbyte_per_s: float | None = None


class TracedSteps(StoredModel):
    """Where a step's time went, by the traces of one trial. Its steps are in no metric."""

    problem: str | None = None
    """Why nothing is known; None: it is."""
    notes: tuple[str, ...] = ()
    """What a reader must know beside the figures."""
    traces_count: int = 0
    """Ranks whose traces were read."""
    steps_count: int = 0
    step_time_s: float | None = None
    """Of the traced steps, the mean over ranks."""
    tracing_overhead_ratio: float | None = None
    """step_time_s / the same trial's timed step; None: the workload has no `step_time_s`."""
    parts_s: dict[str, float | None] = Field(default_factory=dict)
    """A step's mean over ranks; the parts add up to `step_time_s`. `straggler_wait` is null where
    only one rank's trace is there, and `exposed_communication` is an upper bound then."""
    exposed_by_network_s: dict[str, float] = Field(default_factory=dict)
    """Of exposed communication what groups `inside_nodes` and `between_nodes` have; `unknown`: of
    groups whose ranks the trace does not name, as Gloo's."""
    overlapped_communication_s: float | None = None
    """Communication that computing or copying hides."""
    compute_slowdown_s: float | None = None
    """What kernels took longer for running beside communication; None: it can't be told."""
    compute_ratio: float | None = None
    """Share of a step in which the GPU (without one: the CPU's operators) computes."""
    gpu_busy_ratio: float | None = None
    """Share in which anything runs on the GPU, spinning collectives too; None: no GPU."""
    is_all_ranks: bool = False
    ranks: tuple[TracedRank, ...] = ()
    """At most 64."""
    stragglers: tuple[TracedStraggler, ...] = ()
    collectives: tuple[TracedCollective, ...] = ()
    """The most exposed, at most 24."""
