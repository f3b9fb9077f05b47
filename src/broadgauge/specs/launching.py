"""What do the engine, the platforms and the probes say to each other?

The engine asks a platform for a launch and gives it trials. The platform's supervisor starts the
ranks, which run `broadgauge.probes.worker` (or the user's command), and passes on what they say:
messages in frames (messages/frames.py), and marks, at which every node's counters are read while
all ranks wait. Nothing of this crosses the network under test.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, runtime_checkable

from broadgauge.agent.taken_cores import TakenCores
from broadgauge.messages.counters import NodeCounters
from broadgauge.specs.case import Arm, Case
from broadgauge.specs.platforms import PlatformKind
from broadgauge.specs.records.nccl import NcclUse
from broadgauge.specs.records.record import (
    ClockFacts,
    Environment,
    Finding,
    GpuUse,
    LinkFacts,
    PathFacts,
    Phase,
    Status,
    TrialError,
)
from broadgauge.specs.time_limits import TimeLimits

RankMessage = Mapping[str, Any]
"""One decoded frame; `merging/rank_blocks.py` validates it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRequest:
    trial_id: str
    case: Case
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRequest:
    """A set of ranks from start to end. All its cases share nodes, ranks, device, backend,
    platform and variables.

    Plain data, so that it can be sent to where the ranks start: it names no path of this machine.
    """

    launch_id: str
    cases: tuple[Case, ...]
    cores_per_node: int
    """What was asked for; the platform says in a note when cores are shared."""
    limits: TimeLimits
    trials: tuple[TrialRequest, ...] = ()
    """What is left of the planned launch, in its order: a platform that goes on without the tool
    runs them by itself. The tool asks for each of them all the same."""

    @property
    def arm(self) -> Arm:
        """Whose side of a comparison the launch is of; a launch is of one."""
        return self.cases[0].arm

    @property
    def platform(self) -> PlatformKind | None:
        """Which of several platforms is asked; None: there is one."""
        return self.cases[0].platform


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A moment at which every rank waited, outside the network, for the counters to be read."""

    label: str
    time_s: float
    """Monotonic clock of the host."""
    nodes: tuple[NodeCounters, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialOutcome:
    """What happened in one trial, as seen from outside the ranks."""

    status: Status
    started_unix_s: float
    ended_unix_s: float
    error: TrialError | None = None
    messages: tuple[tuple[RankMessage, ...], ...] = ()
    """By rank, in the order sent. What was said before a failure is kept."""
    marks: tuple[Mark, ...] = ()
    gpus: tuple[GpuUse, ...] = ()
    link: LinkFacts | None = None
    path: PathFacts | None = None
    nccl: NcclUse | None = None
    findings: tuple[Finding, ...] = ()
    """What its logs say, beside what is judged of its figures."""
    clocks: tuple[ClockFacts, ...] = ()
    launch_id: str | None = None
    """Of the life that it ran in; None: the one that was asked for. A leader went on by itself."""


WAITING: Final = "waiting"
"""For machines, which may take hours: no phase of ranks, and none that a record knows."""
ShownPhase = Phase | Literal["waiting"]


class TrialProgress(Protocol):
    """Told what goes on while a trial runs; must return quickly."""

    def __call__(self, phase: ShownPhase, detail: str) -> None: ...


class Launch(Protocol):
    """Living ranks."""

    @property
    def environment(self) -> Environment: ...

    @property
    def is_alive(self) -> bool:
        """False once a rank or the supervisor has ended; the rest of the trials need another."""
        ...

    def run_trial(self, request: TrialRequest, progress: TrialProgress) -> TrialOutcome:
        """Runs one trial. Never raises for what ranks do: that is a failed outcome."""
        ...

    def close(self) -> None:
        """Ends the ranks, politely first; nothing of the launch is left afterwards."""
        ...


class Platform(Protocol):
    """Where cases run."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know, such as cores being shared between nodes."""
        ...

    def start(self, request: LaunchRequest, progress: TrialProgress) -> Launch:
        """Starts the ranks of one launch. Raises LaunchError (this one), PlatformError (all).

        RunFolderError where the logs can't be written.
        """
        ...

    def rank_commands(self, request: LaunchRequest) -> tuple[str, ...]:
        """The exact environment and command of each rank, as text, for `--dry-run`."""
        ...

    def close(self) -> None:
        """Ends what the platform holds; safe to call twice."""
        ...


@runtime_checkable
class RunsWithoutTool(Protocol):
    """A platform on which what runs may go on without the tool."""

    def leave(self, *, only_found: bool = False) -> bool:
        """Let go of what runs there; `close` does not end it after this. False: nothing runs, as
        far as is known, or nothing of which anything was heard yet: that is ended.

        `only_found`: what an earlier life of the tool has begun; what this one has is ended.
        """
        ...


@runtime_checkable
class SeesMachines(Protocol):
    """A platform that looked at the machines which it will use."""

    @property
    def taken_cores(self) -> Mapping[str, TakenCores]:
        """What others had of each one's cores just before, by its name; `""`: this machine."""
        ...


@runtime_checkable
class LooksAhead(RunsWithoutTool, Protocol):
    """A platform that can run several launches by itself, and so wants to know of them."""

    def expect(self, requests: Sequence[LaunchRequest]) -> None:
        """These will be asked for, in this order, if all goes well. Raises PlatformError."""
        ...
