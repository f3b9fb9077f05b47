"""What do the tool and a leader say to each other, and what does a leader keep for a tool that is
not there?

A leader stands beside the first agent of an allocation and lives on without the tool. It is given
jobs, one a planned launch, and makes its agents look like one: their events come in one stream, a
mark is one event with the counters of all nodes.

    tool → leader                          leader → tool
      attach    what I have, up to here    leader_hello, then every `spooled` event after that
      take_jobs in place of those left
      skip      none of these trials
      stored    up to here it is safe
      stop      end all, leave nothing

Events are numbered from 0 and kept in the leader's spool until the tool says that they are stored.
"""

from dataclasses import dataclass
from typing import Any, Literal

from broadgauge.messages.agent import AgentHello, RunTrial
from broadgauge.messages.codec import Decoder
from broadgauge.messages.launch_order import LaunchOrder
from broadgauge.messages.preflight import PreflightDone, PreflightMode

LIFE_WORD = "{life}"
PORT_WORD = "{port}"
MASTER_WORD = "{master}"
"""Stand in the texts of a job's orders; the leader puts in the life's id, a port that is free on
the first node, and that node's address."""
INTERFACES_WORD = "{interfaces}"
"""Stands there, too; an agent that has to look for its launch's network puts in its interfaces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOrder:
    """What one agent is told of a launch."""

    agent: int
    """Its number: that of its host in the allocation."""
    order: LaunchOrder


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The trials of one planned launch that are left, and how its ranks are started."""

    job_id: str
    """The planned launch's id."""
    first_life: int
    """0: its first life is called as the job, the others `<job>r<n>`."""
    num_ranks: int
    orders: tuple[AgentOrder, ...]
    trials: tuple[RunTrial, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attach:
    """The first that a tool says. Another one that was attached is let go."""

    type: Literal["attach"] = "attach"
    after: int
    """The last event that is stored; −1: none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeJobs:
    """Instead of all that are left; a life that runs is ended."""

    type: Literal["take_jobs"] = "take_jobs"
    generation: int
    """Larger than of the jobs before; events say of which jobs they are."""
    jobs: tuple[Job, ...]
    preflight: PreflightMode = "no"
    """Of all their machines and networks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkipTrials:
    """None of these is wanted any more. A life that has no other left is ended; the generation
    stays, and all that was measured counts."""

    type: Literal["skip_trials"] = "skip_trials"
    trial_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    type: Literal["stored"] = "stored"
    number: int
    """Of the last event that is in the run folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """End the ranks, the agents and yourself; leave nothing."""

    type: Literal["stop"] = "stop"


LeaderOrder = Attach | TakeJobs | SkipTrials | Stored | Stop
LEADER_ORDER: Decoder[LeaderOrder] = Decoder(LeaderOrder)


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeBegins:
    """The agents are told to start the ranks of a life; their events follow, up to `life_ends`."""

    type: Literal["life_begins"] = "life_begins"
    life_id: str
    agents: tuple[AgentHello, ...]
    """Of the nodes of this launch, in their order."""
    first_trial: str = ""
    """That it is to begin with: the one that it uses up where its ranks do not come up. Empty: a
    leader of an older version does not say it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialBegins:
    """What follows is of this trial."""

    type: Literal["trial_begins"] = "trial_begins"
    trial_id: str
    unix_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockReading:
    """How far is an agent's clock ahead of the leader's?"""

    agent: int
    offset_s: float
    """Of the time of day."""
    uncertainty_s: float
    """Half of the shortest round trip: the offset is within it, whichever way was slower."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialEnds:
    """Nothing more comes of this trial."""

    type: Literal["trial_ends"] = "trial_ends"
    trial_id: str
    unix_s: float
    clocks_before: tuple[ClockReading, ...] = ()
    clocks_after: tuple[ClockReading, ...] = ()
    """Empty: it failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLost:
    """The connection to an agent ended, or it stood still."""

    type: Literal["agent_lost"] = "agent_lost"
    agent: int
    message: str
    is_connected: bool = False
    """It is given up for this life alone: the leader goes on with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeEnds:
    """No rank of it is left, on hosts that can be reached."""

    type: Literal["life_ends"] = "life_ends"
    life_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsDone:
    """Nothing is left to run of this generation."""

    type: Literal["jobs_done"] = "jobs_done"


LifeEvent = LifeBegins | TrialBegins | TrialEnds | AgentLost | LifeEnds | JobsDone | PreflightDone
LIFE_EVENT: Decoder[LifeEvent] = Decoder(LifeEvent)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderHello:
    """The first that a leader says to a tool."""

    type: Literal["leader_hello"] = "leader_hello"
    version: str
    pid: int
    generation: int
    """Of the jobs that it has; −1: none."""
    next_number: int
    """Of the next event."""
    leader: str = ""
    """Which process this is: another one in its place begins with event 0 again. Empty: not
    known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spooled:
    """One event: a `LifeEvent`, or an agents' event as one agent would say it."""

    type: Literal["spooled"] = "spooled"
    number: int
    generation: int
    event: dict[str, Any]
    leader: str = ""
    """As in its hello. Empty: as the event before; a log, whose beginning may be cut off, says it
    with each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderAlive:
    """Once in a while, so that a dead connection is seen."""

    type: Literal["leader_alive"] = "leader_alive"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderGivesUp:
    """The last that it says: it ends its agents and itself, and the tool starts another."""

    type: Literal["leader_gives_up"] = "leader_gives_up"
    message: str


TOLD_TO_END = "its pod was told to end (SIGTERM)"
"""What a leader gives up with whose pod is ended: whoever ends it says why somewhere else."""

LeaderEvent = LeaderHello | Spooled | LeaderAlive | LeaderGivesUp
LEADER_EVENT: Decoder[LeaderEvent] = Decoder(LeaderEvent)
