"""What do a rank and its agent say to each other?

    agent → rank (frames on the file descriptor BROADGAUGE_COMMAND_FD)
      trial    measure this now
      release  every rank has reached the mark and the counters are read: go on
      end      leave

    rank → agent (frames on BROADGAUGE_RESULT_FD; stdout and stderr are the rank's log)
      hello    alive, torch imported, versions
      phase    this phase of this trial begins
      mark     waiting for release
      block    measured figures, kept even if the trial fails later
      artifact a file that the trial leaves
      count    read the counters now, nobody waits: a command's steps have begun, or gone on
      unanswered  a storage does not answer any more, or does again
      stalled  no step or metric came for much longer than usual: the agent ends the trial
      stacks   where the ranks of a user's command stand, asked for when a trial hangs
      done     the trial succeeded
      failed   the trial ended with an error the rank could still tell

The rank's other environment is torchrun's contract (RANK, WORLD_SIZE, LOCAL_RANK,
LOCAL_WORLD_SIZE, GROUP_RANK, MASTER_ADDR, MASTER_PORT). Times in seconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from broadgauge.messages.codec import Decoder
from broadgauge.messages.stacks import RankStack
from broadgauge.messages.storage import FileAccess
from broadgauge.messages.tasks import RankLayout, Task
from broadgauge.messages.vocabulary import CollectiveOp, ErrorKind, Phase, StepMode

COMMAND_FD_VARIABLE = "BROADGAUGE_COMMAND_FD"
RESULT_FD_VARIABLE = "BROADGAUGE_RESULT_FD"
BARRIER = "barrier"
"""The `op` of the block that tells what the barriers between the iterations cost on the wire."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialCommand:
    type: Literal["trial"] = "trial"
    trial_id: str
    task: Task
    layout: RankLayout
    seed: int
    process_group_timeouts_s: dict[Phase, float]
    """By phase, below the phase's limit: torch's own error comes first and is the better one."""
    stall_s: float | None = None
    """Silence of a step or metric from here on may be a hang; None: only the phases' limits are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseCommand:
    type: Literal["release"] = "release"
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EndCommand:
    type: Literal["end"] = "end"


Command = TrialCommand | ReleaseCommand | EndCommand
COMMAND: Decoder[Command] = Decoder(Command)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    type: Literal["hello"] = "hello"
    rank: int
    pid: int
    """In the rank's own PID namespace."""
    torch: str
    nccl: str | None
    cuda: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseBegins:
    type: Literal["phase"] = "phase"
    trial_id: str
    phase: Phase
    detail: str = ""
    """For the progress display and the time-out's message: `all_reduce float32 64 MiB`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkReached:
    """Every rank sends the same labels in the same order; `label` is unique in the trial."""

    type: Literal["mark"] = "mark"
    trial_id: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveBlock:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RankGroup:
    """One of the equal groups that the world is divided into: ranks at equal distances.

    Ranks are numbered node by node. On 2 nodes of 4, the ranks inside a node are groups of size 4
    and stride 1, the first ranks of all nodes (and the second, …) of size 2 and stride 4.
    """

    size: int
    stride: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCollective:
    """A collective that a step makes, `count` times at this size: the mean of several steps."""

    op: CollectiveOp
    size_bytes: int
    """Total size S of nccl-tests."""
    count: float = 1
    group: RankGroup | None = None
    """Each of these groups makes it; None: the whole world."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsBlock:
    """Training steps in a row on one rank, between the marks `<label>:begin` and `<label>:end`."""

    type: Literal["block"] = "block"
    kind: Literal["steps"] = "steps"
    trial_id: str
    label: str
    mode: StepMode
    seconds: tuple[float, ...]
    losses: tuple[float | None, ...]
    """None: not finite."""
    num_samples: tuple[int, ...] = ()
    """Of this rank, by step; empty: all steps are as large."""
    num_tokens: tuple[int, ...] = ()
    """The same, padding not counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainSummary:
    """What one rank says once of its training."""

    type: Literal["block"] = "block"
    kind: Literal["train_summary"] = "train_summary"
    trial_id: str
    parameters: int
    """Frozen ones, and adapters, too."""
    tokens_per_step: int
    """Of this rank."""
    sequences_per_step: int
    gradient_bytes: int
    """Of all gradients, in the type they are reduced in."""
    collectives: tuple[StepCollective, ...] = ()
    """Of a communicating step; empty: one all_reduce of the gradients."""
    flops_per_step: float
    peak_memory_bytes: int
    data: str
    """Which text was read."""
    parameter_checksum: float | None
    """None: not finite. Sum of all parameters after the communicating steps, sharded ones gathered:
    equal on all ranks."""
    is_frozen_unchanged: bool | None = None
    """Has this rank the frozen weights that it began with, bit by bit? None: it has none."""
    compile_s: float | None = None
    """What torch.compile took, in no measured step; None: nothing was compiled."""
    start_up_s: float | None = None
    """From this process's start to its process group, what it waited for other trials left out;
    None: the kernel does not say when it began."""
    load_s: float | None = None
    """To open the data, build the model and draw its weights."""
    warm_up_s: float | None = None
    """Of the warm-up's steps, and of compiling before them."""
    epoch_samples: int | None = None
    """Of the set whose samples are packed; None: none are."""
    taken_samples: int | None = None
    """Of those, the ones that no budget leaves out; None: all."""
    micro_batches_count: float | None = None
    """Mean of the measured steps, of packed samples."""
    padding_ratio: float | None = None
    """The same, share of the positions that this rank computes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSamples:
    """What one node's ranks printed of each metric, read beside them from their output."""

    type: Literal["block"] = "block"
    kind: Literal["command"] = "command"
    trial_id: str
    samples: dict[str, tuple[float, ...]]
    """Of the first rank of the node that printed the metric."""
    exit_code: int
    ranks: dict[str, int] = field(default_factory=dict)
    """By metric: whose samples these are."""
    missing: dict[str, str] = field(default_factory=dict)
    """By metric: why there are none, in a sentence."""
    last_lines: tuple[str, ...] = ()
    """Of the node's first rank."""


Block = CollectiveBlock | StepsBlock | TrainSummary | FileAccess | CommandSamples
BLOCK: Decoder[Block] = Decoder(Block)

ArtifactKind = Literal["trace", "log", "checkpoint_list"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A file that a trial leaves: a profiler's trace, a library's log, a list of checkpoints."""

    type: Literal["artifact"] = "artifact"
    trial_id: str
    name: str
    """Unique among the trial's; a file name: `rank0.trace.json.gz`."""
    path: str
    """Where it is on the rank's machine."""
    size_bytes: int
    sha256: str
    """Of its content, as hexadecimal digits."""
    kind: ArtifactKind


ARTIFACT: Decoder[Artifact] = Decoder(Artifact)


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    type: Literal["done"] = "done"
    trial_id: str


COUNTED_STEPS = "command:steps/"
"""How the labels of marks begin that nobody waits at; the number of samples until then follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountNow:
    type: Literal["count"] = "count"
    trial_id: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalled:
    type: Literal["stalled"] = "stalled"
    trial_id: str
    message: str
    """Since when, and how often it came before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """A call to the kernel on a storage's files has not come back for a while. It may yet: nothing
    is ended for that, and where a limit passes this is why."""

    type: Literal["unanswered"] = "unanswered"
    trial_id: str
    message: str
    """Which storage, and what was asked of it; empty: it has answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stacks:
    """Where the ranks stand that one node of a user's command has."""

    type: Literal["stacks"] = "stacks"
    trial_id: str
    ranks: tuple[RankStack, ...]


STACKS: Decoder[Stacks] = Decoder(Stacks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    type: Literal["failed"] = "failed"
    trial_id: str
    kind: ErrorKind
    message: str
    rank: int | None = None
    """Of the ranks that this process has started; None: this process itself."""
    frame: str | None = None
    """Its own line: `train.py:42 in step`."""
    last_lines: tuple[str, ...] = ()
    """The last that this rank wrote; empty: the log's end says it."""


def group_of(ranks: Sequence[int], world_size: int) -> RankGroup | None:
    """Which group are these ranks? None: all of the world.

    Raises ValueError where they don't stand at equal distances.
    """
    if len(ranks) == world_size:
        return None
    stride = ranks[1] - ranks[0] if len(ranks) > 1 else 1
    if list(ranks) != list(range(ranks[0], ranks[0] + stride * len(ranks), stride)):
        raise ValueError(f"ranks at unequal distances: {list(ranks)}")
    return RankGroup(size=len(ranks), stride=stride)
