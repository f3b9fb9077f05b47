"""What do an agent and its leader say to each other?

An agent owns one or more nodes of a launch: it starts their ranks, reads their counters, passes on
what ranks say, and ends them. The leader holds the launch: on one machine it is the tool, whose one
agent owns all nodes; on a cluster it stands beside the first agent. Frames go both ways over
whatever joins the two: a socket, a pipe, ssh's stdin and stdout.

    leader → agent                         agent → leader
                                           agent_hello    which program, on which machine
      launch       start these ranks       launch_taken   what follows is of it
                                           ready | refused
      run_trial    shape, begin            trial_starts, then rank_said, …
                                           ranks_wait     all ranks of this agent are at a mark
      read         all ranks of the launch are: read your nodes' counters
                                           counters_read
      release      all counters are read: let the ranks go on
                                           marked         what the counters said, and when
      dump_stacks  another's rank hangs
      ask_clock    what time is it there?  clock
      listen_on_link, call_on_link         listens_on_link, link_probed: found_links.py
      preflight_open, …                    preflight_opened, …: preflight.py
      end          end the ranks           ended (last)
                                           adapters_used  before the last rank of a trial is done
                                           at any time: alive (once a second), rank_exited,
                                           rank_left, phase_expired, stacks_dumped,
                                           log_flooded, log_text

An agent that owns all nodes of its launch sends no `ranks_wait`: it reads and releases at once, as
no other machine has to be waited for.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from broadgauge.messages.adapters_used import AdaptersUsed
from broadgauge.messages.codec import Decoder
from broadgauge.messages.counters import LinkFacts, NodeCounters
from broadgauge.messages.found_links import CallOnLink, LinkProbed, ListenOnLink, ListensOnLink
from broadgauge.messages.launch_order import LaunchOrder, Link
from broadgauge.messages.preflight import (
    CallOthers,
    ClosePreflight,
    OpenPreflight,
    OthersCalled,
    PreflightOpened,
)
from broadgauge.messages.rank import TrialCommand
from broadgauge.messages.vocabulary import Phase

PROTOCOL_VERSION = 2
"""Grows when an agent of the old one would go wrong; new keys and messages alone don't."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTrial:
    type: Literal["run_trial"] = "run_trial"
    command: TrialCommand
    link: Link | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadCounters:
    """All ranks of the launch, also those of other agents, wait at this mark."""

    type: Literal["read"] = "read"
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """All agents have read their counters."""

    type: Literal["release"] = "release"
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpStacks:
    """A rank of another agent's hangs or waits in vain: have yours say where they are, and end."""

    type: Literal["dump_stacks"] = "dump_stacks"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskClock:
    """The leader notes when it asks and when it hears: offset and uncertainty follow."""

    type: Literal["ask_clock"] = "ask_clock"
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """Between trials: end the ranks politely. During one: end them now."""

    type: Literal["end"] = "end"


Order = (
    LaunchOrder
    | RunTrial
    | ReadCounters
    | Release
    | DumpStacks
    | AskClock
    | ListenOnLink
    | CallOnLink
    | OpenPreflight
    | CallOthers
    | ClosePreflight
    | End
)
ORDER: Decoder[Order] = Decoder(Order)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentHello:
    """The first that an agent says."""

    type: Literal["agent_hello"] = "agent_hello"
    protocol: int
    version: str
    """The content hash of its zip file, or the package's version."""
    python: str
    hostname: str
    pid: int
    kernel: str
    cores: int
    memory_bytes: int
    facts: dict[str, Any] | None = None
    """Of its machine (agent/facts.py), where nobody could look at it before; None: the tool has
    them."""
    place: dict[str, str] = field(default_factory=dict)
    """Of a pod: its `node`, its name `pod`, its `address` on the pod network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchTaken:
    """Nothing is left of the launch before: what an agent says from here on is of this one.

    What it said before may still be on its way when the leader begins another.
    """

    type: Literal["launch_taken"] = "launch_taken"
    number: int
    """Of the order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """The nodes stand and the ranks are started; they have not said hello yet."""

    type: Literal["ready"] = "ready"
    notes: tuple[str, ...]
    variables: dict[str, str] = field(default_factory=dict)
    """That the agent gave its ranks, for what it found its launch's network to be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The nodes or a rank could not be started; nothing is left."""

    type: Literal["refused"] = "refused"
    message: str
    hint: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialStarts:
    """All ranks of this agent were told to begin, on a link that has the trial's rate if we shape
    it."""

    type: Literal["trial_starts"] = "trial_starts"
    facts: LinkFacts | None
    notes: tuple[str, ...] = ()
    """All so far, those of `Ready` among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSaid:
    type: Literal["rank_said"] = "rank_said"
    rank: int
    message: dict[str, Any]
    """As it came: what a broken rank says is read where it is judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RanksWait:
    """All ranks of this agent have reached the mark; another agent's may not have."""

    type: Literal["ranks_wait"] = "ranks_wait"
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CountersRead:
    type: Literal["counters_read"] = "counters_read"
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReading:
    node: int
    counters: NodeCounters


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """All ranks waited, the counters were read, and the ranks were released."""

    type: Literal["marked"] = "marked"
    label: str
    time_s: float
    """The agent's monotonic clock: of `<label>:begin` the release, of others the arrival of the
    last of its ranks."""
    nodes: tuple[NodeReading, ...]
    """Those that this agent owns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockTold:
    type: Literal["clock"] = "clock"
    number: int
    """Of the question."""
    monotonic_s: float
    unix_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RankExited:
    """Exactly one of `exit_code` and `signal` is given."""

    type: Literal["rank_exited"] = "rank_exited"
    rank: int
    exit_code: int | None
    signal: int | None
    was_told_to: bool
    """The agent was ending it: no symptom of anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankLeft:
    """It was killed and has not ended: it waits in the kernel, as for a mount that hangs. Nobody
    waits for it any more."""

    type: Literal["rank_left"] = "rank_left"
    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseExpired:
    """A phase's time limit passed, or a rank told of a stall; stacks were dumped and the ranks are
    being ended."""

    type: Literal["phase_expired"] = "phase_expired"
    phase: Phase
    rank: int
    """The one of this agent's that was silent longest."""
    message: str
    waits_at: str | None = None
    """The mark at which this rank waits, so that another agent's is the silent one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StacksDumped:
    """A rank saw a collective time out: the ranks still there wrote their stacks.

    What they say from now on comes of that.
    """

    type: Literal["stacks_dumped"] = "stacks_dumped"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFlooded:
    """A rank's log is longer than the agent allows; the ranks are being ended."""

    type: Literal["log_flooded"] = "log_flooded"
    rank: int
    limit_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogText:
    """A part of a file that a launch wrote, told when it has ended: its leader can't read it."""

    type: Literal["log_text"] = "log_text"
    name: str
    """In the folder for logs."""
    text: str
    """What is no UTF-8 in it was replaced."""
    left_out_bytes: int
    """Before this part: of a longer file only the end is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alive:
    """Once a second: the agent has not stopped."""

    type: Literal["alive"] = "alive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """Nothing more comes of its ranks."""

    type: Literal["ended"] = "ended"


Event = (
    AgentHello
    | LaunchTaken
    | Ready
    | Refused
    | TrialStarts
    | RankSaid
    | RanksWait
    | CountersRead
    | Marked
    | ClockTold
    | ListensOnLink
    | LinkProbed
    | PreflightOpened
    | OthersCalled
    | AdaptersUsed
    | RankExited
    | RankLeft
    | PhaseExpired
    | StacksDumped
    | LogFlooded
    | LogText
    | Alive
    | Ended
)
EVENT: Decoder[Event] = Decoder(Event)
