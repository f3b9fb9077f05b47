"""What is a launch whose ranks a supervisor owns, as the engine sees it?"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from broadgauge.agent.supervisor.watch import limit_s
from broadgauge.messages import counters
from broadgauge.messages.agent import End as EndOrder
from broadgauge.messages.agent import (
    Ended,
    Event,
    Marked,
    PhaseExpired,
    RankSaid,
    RunTrial,
    TrialStarts,
)
from broadgauge.messages.codec import encode
from broadgauge.messages.launch_order import LaunchOrder, PhaseLimits
from broadgauge.messages.rank import TrialCommand
from broadgauge.messages.waiting_limits import waiting_limit_s
from broadgauge.platforms.connection import SupervisorConnection, SupervisorLost
from broadgauge.platforms.diagnosis import Symptoms, status_of
from broadgauge.platforms.gpu_watch import GpuWatch
from broadgauge.platforms.launch_logs import LaunchLogs
from broadgauge.platforms.launch_plan import link_of
from broadgauge.specs.launching import Mark, RankMessage, TrialOutcome, TrialProgress, TrialRequest
from broadgauge.specs.records.record import (
    Environment,
    ErrorKind,
    LinkFacts,
    PathFacts,
    Phase,
    Status,
    TrialError,
)
from broadgauge.specs.workloads.tasks import layout_of, task_of

SILENCE_LIMIT_S = waiting_limit_s(30.0)
"""The supervisor says every second that it is there; a busy host may make it late."""
END_GRACE_S = waiting_limit_s(10.0)
"""On top of the ranks' teardown: stacks, TERM and KILL take a few seconds."""
GROUP_TIMEOUT_RATIO = 0.8
"""The process group's own limit in each phase, as a part of the phase's: torch's error is the
better one."""


@dataclass(slots=True, kw_only=True)
class TrialEvents:
    """All that came from the supervisor in one trial."""

    num_ranks: int
    messages: list[list[RankMessage]] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    link: LinkFacts | None = None
    notes: tuple[str, ...] = ()
    """What the user should know of the nodes and their links."""
    symptoms: Symptoms = field(default_factory=Symptoms)
    done: set[int] = field(default_factory=set)
    has_ended: bool = False

    def __post_init__(self) -> None:
        self.messages = [[] for _ in range(self.num_ranks)]

    @property
    def is_over(self) -> bool:
        """Is there nothing more to come? After a failure, only when the ranks have ended."""
        return self.has_ended or (len(self.done) == self.num_ranks and not self.symptoms.is_failed)

    def take(self, event: Event, progress: TrialProgress) -> None:
        """Keep what an event says and tell the user of new phases."""
        if not self.has_ended:
            self.symptoms.see(event)
        match event:
            case RankSaid():
                self.messages[event.rank].append(event.message)
                self._follow(event, progress)
            case Marked():
                self.marks.append(mark_of(event))
            case TrialStarts():
                self.link, self.notes = link_facts(event.facts), event.notes
            case PhaseExpired():
                progress(event.phase, event.message)
            case Ended():
                self.has_ended = True
            case _:
                pass

    def _follow(self, event: RankSaid, progress: TrialProgress) -> None:
        kind = event.message.get("type")
        if kind == "done":
            self.done.add(event.rank)
        elif kind == "phase" and event.rank == 0 and event.message.get("phase") in tuple(Phase):
            progress(Phase(event.message["phase"]), str(event.message.get("detail", "")))


def mark_of(event: Marked) -> Mark:
    """One agent's mark is the launch's where it owns all of its nodes."""
    nodes = sorted(event.nodes, key=lambda reading: reading.node)
    read = tuple(reading.counters for reading in nodes)
    return Mark(label=event.label, time_s=event.time_s, nodes=read)


def link_facts(facts: counters.LinkFacts | None) -> LinkFacts | None:
    """As they are stored."""
    return None if facts is None else LinkFacts.model_validate(encode(facts))


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What a look at the libraries' logs and the GPUs' counters said of a good trial."""

    error: TrialError | None = None
    path: PathFacts | None = None


CheckTrial = Callable[[TrialEvents, GpuWatch], CheckResult]
TakeNotes = Callable[[tuple[str, ...]], None]


class SupervisedLaunch:
    """Living ranks behind a supervisor. Made by `starting.start_launch`."""

    def __init__(
        self,
        connection: SupervisorConnection,
        order: LaunchOrder,
        environment: Environment,
        *,
        logs: LaunchLogs,
        gpus: Sequence[str] = (),
        check: CheckTrial | None = None,
        take_notes: TakeNotes | None = None,
    ) -> None:
        """`logs`: of this launch. `gpus`: the identifiers NVML watches.

        `check`: what else must hold of a good trial. `take_notes`: who is told what the user
        should know, again and again the same.
        """
        self._connection = connection
        self._order = order
        self._logs = logs
        self._environment = environment
        self._gpus = tuple(gpus)
        self._check = check
        self._take_notes = take_notes
        self._is_alive = True
        self._is_closed = False

    @property
    def environment(self) -> Environment:
        """What the launch's figures depend on besides the experiment."""
        return self._environment

    @property
    def pid(self) -> int:
        """Of the guard, the outermost process of the launch."""
        return self._connection.pid

    @property
    def is_alive(self) -> bool:
        """Can another trial run? Between trials a rank's end is seen here."""
        try:
            while self._is_alive and (event := self._connection.receive(0)) is not None:
                symptoms = Symptoms()
                symptoms.see(event)
                self._is_alive = not (symptoms.is_failed or isinstance(event, Ended))
        except SupervisorLost:
            self._is_alive = False
        return self._is_alive

    def run_trial(self, request: TrialRequest, progress: TrialProgress) -> TrialOutcome:
        """Run one trial on the living ranks; what ranks do wrong is a failed outcome."""
        started_unix_s = time.time()
        events = TrialEvents(num_ranks=len(self._order.ranks))
        watch = GpuWatch(self._gpus)
        with watch:
            error = self._pump(request, events, progress)
        if self._take_notes is not None:
            self._take_notes(events.notes)
        checked = CheckResult()
        if error is None and self._check is not None:
            checked = self._check(events, watch)
            error = checked.error
        if error is not None:
            self._end()
        told = self._logs.of_trial(request.case, error)
        if told.error is not None:
            error = told.error
            self._end()
        return TrialOutcome(
            status=status_of(error) if error is not None else Status.OK,
            started_unix_s=started_unix_s,
            ended_unix_s=time.time(),
            error=error,
            messages=tuple(tuple(messages) for messages in events.messages),
            marks=tuple(events.marks),
            gpus=watch.uses(),
            link=events.link,
            path=checked.path,
            nccl=told.nccl,
            findings=told.findings,
        )

    def _end(self) -> None:
        self._is_alive = False
        self.close()

    def close(self) -> None:
        """End the ranks, politely when they are idle; nothing of the launch is left afterwards."""
        if self._is_closed:
            return
        self._is_closed = True
        self._is_alive = False
        self._connection.send(EndOrder())
        self._connection.close(self._order.limits.teardown_s + END_GRACE_S)

    def _pump(
        self, request: TrialRequest, events: TrialEvents, progress: TrialProgress
    ) -> TrialError | None:
        """Have the trial run and take everything in; what went wrong, if anything did."""
        if not self.is_alive:
            return self._lost("the launch had ended before the trial")
        self._connection.send(trial_order(request, self._order.limits))
        try:
            while not events.is_over:
                event = self._connection.receive(SILENCE_LIMIT_S)
                if event is None:
                    self._connection.close(0)
                    return self._lost(
                        f"the supervisor of the ranks did not answer for {SILENCE_LIMIT_S:g} s"
                    )
                events.take(event, progress)
        except SupervisorLost as loss:
            return events.symptoms.error(self._log_paths) or self._lost(str(loss))
        error = events.symptoms.error(self._log_paths)
        if error is None and len(events.done) < events.num_ranks:
            return self._lost("the launch was ended before the trial was done")
        return error

    @property
    def _log_paths(self) -> tuple[Path, ...]:
        return tuple(self._logs.folder / rank.log for rank in self._order.ranks)

    def _lost(self, message: str) -> TrialError:
        return TrialError(kind=ErrorKind.LAUNCHER_LOST, message=message)


def trial_order(request: TrialRequest, limits: PhaseLimits) -> RunTrial:
    """What is the supervisor told to run this trial?"""
    command = TrialCommand(
        trial_id=request.trial_id,
        task=task_of(request.case),
        layout=layout_of(request.case),
        seed=request.seed,
        process_group_timeouts_s={
            phase: GROUP_TIMEOUT_RATIO * limit_s(limits, phase) for phase in Phase
        },
        stall_s=limits.stall_s,
    )
    return RunTrial(command=command, link=link_of(request.case))
