"""What do the tool and a launch's supervisor say to each other? Frames over one socket.

tool → supervisor   LaunchPlan (first), RunTrial, End
supervisor → tool   Ready or Refused (first), TrialStarts, RankSaid, Marked, RankExited,
                    PhaseExpired, StacksDumped, LogFlooded, Alive, Ended (last)
"""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from broadgauge.messages.rank import TrialCommand
from broadgauge.specs.experiment import TimeLimits
from broadgauge.specs.launching import NodeCounters
from broadgauge.specs.network import SlowPair
from broadgauge.specs.plan import Stored
from broadgauge.specs.record import LinkFacts, Phase


class Mode(StrEnum):
    NAMESPACES = "namespaces"
    """Nodes are namespaces, the supervisor is PID 1 of its own."""
    PLAIN = "plain"
    """No namespaces: the ranks are ordinary processes of this machine."""


class Link(Stored):
    """What every node's link is to carry: all of a network that shapes it."""

    rate_gbps: float | None
    """Line rate of each NIC, 10^9 bit/s with Ethernet headers; None: unshaped."""
    mtu_bytes: int
    receive_rate_gbps: float | None = None
    """Towards a node, where it differs."""
    delay_s: float = 0.0
    jitter_s: float = 0.0
    loss_ratio: float = 0.0
    slow_pairs: tuple[SlowPair, ...] = ()
    overlay: Literal["vxlan"] | None = None
    nics_per_node: int = 1
    """These two are built with the nodes and stay."""


class RankPlan(Stored):
    """One process to start."""

    rank: int
    node: int
    argv: tuple[str, ...]
    environment: dict[str, str] = Field(repr=False)
    """What differs between the ranks; the rest is the launch's. Secrets are among them."""
    log_path: str


class LaunchPlan(Stored):
    """All that the supervisor must know to start the ranks. It crosses a socket, and no file."""

    model_config = ConfigDict(hide_input_in_errors=True)

    launch_id: str
    mode: Mode
    node_cores: tuple[tuple[int, ...], ...]
    ranks: tuple[RankPlan, ...]
    environment: dict[str, str] = Field(repr=False)
    """What all ranks share, secrets too. Only the numbers of a rank's two pipes are added."""
    link: Link | None
    """None: one node, no link between nodes."""
    working_folder: str
    limits: TimeLimits
    uid: int
    gid: int
    """The user's ids outside of all namespaces: the ranks get them back."""


class RunTrial(Stored):
    type: Literal["run_trial"] = "run_trial"
    command: TrialCommand
    link: Link | None


class End(Stored):
    """Between trials: end the ranks politely. During one: end them now."""

    type: Literal["end"] = "end"


class Ready(Stored):
    """The nodes stand and the ranks are started; they have not said hello yet."""

    type: Literal["ready"] = "ready"
    notes: tuple[str, ...]


class Refused(Stored):
    """The nodes or a rank could not be started; nothing is left."""

    type: Literal["refused"] = "refused"
    message: str
    hint: str | None


class TrialStarts(Stored):
    """The link has the trial's rate, and all ranks were told to begin."""

    type: Literal["trial_starts"] = "trial_starts"
    facts: LinkFacts | None
    notes: tuple[str, ...] = ()
    """All so far, those of `Ready` among them."""


class RankSaid(Stored):
    type: Literal["rank_said"] = "rank_said"
    rank: int
    message: dict[str, Any]


class Marked(Stored):
    """All ranks waited, the counters were read, and the ranks were released."""

    type: Literal["marked"] = "marked"
    label: str
    time_s: float
    """Of `<label>:begin` the release, of others the last rank's arrival."""
    nodes: tuple[NodeCounters, ...]


class RankExited(Stored):
    """Exactly one of `exit_code` and `signal` is given."""

    type: Literal["rank_exited"] = "rank_exited"
    rank: int
    exit_code: int | None
    signal: int | None
    was_told_to: bool
    """The supervisor was ending it: no symptom of anything."""


class PhaseExpired(Stored):
    """A phase's time limit passed; stacks were dumped and the ranks are being ended."""

    type: Literal["phase_expired"] = "phase_expired"
    phase: Phase
    rank: int
    """The one that was silent longest."""
    message: str


class StacksDumped(Stored):
    """A rank saw a collective time out: the ranks still there wrote their stacks.

    What they say from now on comes of that.
    """

    type: Literal["stacks_dumped"] = "stacks_dumped"


class LogFlooded(Stored):
    """A rank's log is longer than the supervisor allows; the ranks are being ended."""

    type: Literal["log_flooded"] = "log_flooded"
    rank: int
    limit_bytes: int


class Alive(Stored):
    """Once a second: the supervisor has not stopped."""

    type: Literal["alive"] = "alive"


class Ended(Stored):
    """No rank is left."""

    type: Literal["ended"] = "ended"


Order = Annotated[RunTrial | End, Field(discriminator="type")]
ORDER: TypeAdapter[Order] = TypeAdapter(Order)
Event = Annotated[
    Ready
    | Refused
    | TrialStarts
    | RankSaid
    | Marked
    | RankExited
    | PhaseExpired
    | StacksDumped
    | LogFlooded
    | Alive
    | Ended,
    Field(discriminator="type"),
]
EVENT: TypeAdapter[Event] = TypeAdapter(Event)
