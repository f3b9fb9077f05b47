"""What do the supervisor and a rank's worker say to each other, frame by frame?

    supervisor → rank (frames on the file descriptor BROADGAUGE_COMMAND_FD)
      trial    measure this case now
      release  every rank has reached the mark and the counters are read: go on
      end      leave

    rank → supervisor (frames on BROADGAUGE_RESULT_FD; stdout and stderr are the rank's log)
      hello    alive, torch imported, versions
      phase    this phase of this trial begins
      mark     waiting for release
      block    measured figures, kept even if the trial fails later
      done     the trial ended well
      failed   the trial ended with an error the rank could still tell

The rank's other environment is torchrun's contract (RANK, WORLD_SIZE, LOCAL_RANK,
LOCAL_WORLD_SIZE, GROUP_RANK, MASTER_ADDR, MASTER_PORT). Times in seconds.
"""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from broadgauge.specs.case import Case
from broadgauge.specs.plan import Stored
from broadgauge.specs.record import ErrorKind, Phase
from broadgauge.specs.workload import CollectiveOp

COMMAND_FD_VARIABLE = "BROADGAUGE_COMMAND_FD"
RESULT_FD_VARIABLE = "BROADGAUGE_RESULT_FD"


class TrialCommand(Stored):
    type: Literal["trial"] = "trial"
    trial_id: str
    case: Case
    seed: int
    process_group_timeouts_s: dict[Phase, float]
    """Below each phase's limit, so that torch's own error comes first and is the better one."""


class ReleaseCommand(Stored):
    type: Literal["release"] = "release"
    label: str


class EndCommand(Stored):
    type: Literal["end"] = "end"


Command = Annotated[TrialCommand | ReleaseCommand | EndCommand, Field(discriminator="type")]
COMMAND: TypeAdapter[Command] = TypeAdapter(Command)


class Hello(Stored):
    type: Literal["hello"] = "hello"
    rank: int
    pid: int
    """In the rank's own PID namespace."""
    torch: str
    nccl: str | None
    cuda: str | None


class PhaseBegins(Stored):
    type: Literal["phase"] = "phase"
    trial_id: str
    phase: Phase
    detail: str = ""
    """For the progress display and the time-out's message: `all_reduce float32 64 MiB`."""


class MarkReached(Stored):
    """Every rank sends the same labels in the same order; `label` is unique in the trial."""

    type: Literal["mark"] = "mark"
    trial_id: str
    label: str


class CollectiveBlock(Stored):
    """One collective at one size on one rank, between the marks `<label>:begin` and `:end`."""

    type: Literal["block"] = "block"
    kind: Literal["collective"] = "collective"
    trial_id: str
    label: str
    op: str
    dtype: str
    size_bytes: int
    seconds: tuple[float, ...]
    """Of each iteration, on this rank, the barrier outside."""
    is_correct: bool | None
    from_rank: int | None = None
    to_rank: int | None = None
    """Of a message between two ranks; the others say the block too, with no seconds."""
    engine: str = "torch"
    iterations: int | None = None
    """Of how many the one figure in `seconds` is the mean; None: `seconds` has each."""


class Message(Stored):
    """A collective that a step makes, `count` times at this size."""

    op: CollectiveOp
    size_bytes: int
    """Total size S of nccl-tests."""
    count: int = 1


class StepsBlock(Stored):
    """Training steps in a row on one rank, between the marks `<label>:begin` and `<label>:end`."""

    type: Literal["block"] = "block"
    kind: Literal["steps"] = "steps"
    trial_id: str
    label: str
    is_communication_on: bool
    seconds: tuple[float, ...]
    losses: tuple[float | None, ...]
    """None: not finite."""


class TrainSummary(Stored):
    """What one rank says once of its training."""

    type: Literal["block"] = "block"
    kind: Literal["train_summary"] = "train_summary"
    trial_id: str
    parameters: int
    tokens_per_step: int
    """Of this rank."""
    sequences_per_step: int
    gradient_bytes: int
    """Of all gradients, in the type they are reduced in."""
    messages: tuple[Message, ...] = ()
    """The collectives of a communicating step; empty: one all_reduce of the gradients."""
    flops_per_step: float
    peak_memory_bytes: int
    data: str
    """Which text was read."""
    parameter_checksum: float | None
    """None: not finite. Sum of all parameters after the communicating steps, sharded ones gathered:
    equal on all ranks."""


class CommandSamples(Stored):
    """What the user's command printed, read by the supervisor's side from its output."""

    type: Literal["block"] = "block"
    kind: Literal["command"] = "command"
    trial_id: str
    samples: dict[str, tuple[float, ...]]
    exit_code: int


Block = Annotated[
    CollectiveBlock | StepsBlock | TrainSummary | CommandSamples, Field(discriminator="kind")
]
BLOCK: TypeAdapter[Block] = TypeAdapter(Block)


class Done(Stored):
    type: Literal["done"] = "done"
    trial_id: str


class Failed(Stored):
    type: Literal["failed"] = "failed"
    trial_id: str
    kind: ErrorKind
    message: str
