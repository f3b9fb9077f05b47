"""What is a launch that a leader runs, as the engine sees it?

The leader may be far ahead: what is asked for here may have been measured long ago.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from broadgauge.messages.adapters_used import AdaptersUsed
from broadgauge.messages.agent import AgentHello, LogText, RankSaid, Ready, Refused
from broadgauge.messages.leader import (
    AgentLost,
    JobsDone,
    LifeBegins,
    LifeEnds,
    TrialBegins,
    TrialEnds,
)
from broadgauge.messages.preflight import PreflightDone
from broadgauge.messages.waiting_limits import waiting_limit_s
from broadgauge.platforms.diagnosis import Symptoms, status_of
from broadgauge.platforms.launch_folders import private, writing
from broadgauge.platforms.launch_logs import LaunchLogs
from broadgauge.platforms.led.adapters_used import findings_of_adapters
from broadgauge.platforms.led.following import Followed, FollowedLeader, LeaderGone, logs_of
from broadgauge.platforms.led.orders import life_number
from broadgauge.platforms.meant_transport import transport_error
from broadgauge.platforms.supervised import TrialEvents
from broadgauge.specs.launching import (
    Launch,
    LaunchRequest,
    RankMessage,
    TrialOutcome,
    TrialProgress,
    TrialRequest,
)
from broadgauge.specs.records.record import (
    ClockFacts,
    Environment,
    ErrorKind,
    Finding,
    Status,
    TrialError,
)

END_LIMIT_S = waiting_limit_s(30.0)
"""For ranks that are told to end, and for what they wrote."""
PATIENCE_S = 5.0
"""Between two looks at whether the user wants the run to end."""


@dataclass(slots=True, kw_only=True)
class ReportedLife:
    """What was heard of one life up to now."""

    life_id: str
    agents: tuple[AgentHello, ...]
    num_ranks: int
    first_trial: str = ""
    """That it was to begin with."""
    notes: tuple[str, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    """That the first agent gave its ranks, for the network that it found."""
    hellos: dict[int, RankMessage] = field(default_factory=dict)
    symptoms: Symptoms = field(default_factory=Symptoms)
    refusal: Refused | None = None
    lost: list[AgentLost] = field(default_factory=list)

    def was_to_begin(self, request: LaunchRequest) -> bool:
        """Was it to begin with what is asked for? Else it is of another launch, or earlier."""
        if self.first_trial:
            return self.first_trial == request.trials[0].trial_id
        (own, number), (asked, least) = map(life_number, (self.life_id, request.launch_id))
        return own == asked and number >= least

    def take(self, event: Followed) -> None:
        """Before its first trial."""
        match event:
            case Ready():
                self.notes = event.notes
                self.variables = event.variables
            case Refused():
                self.refusal = event
            case AgentLost():
                self.lost.append(event)
            case RankSaid() if event.message.get("type") == "hello":
                self.hellos[event.rank] = event.message
            case LifeBegins() | TrialBegins() | TrialEnds() | LifeEnds() | JobsDone():
                return
            case PreflightDone():
                return
            case _:
                pass
        if not isinstance(event, AgentLost):
            self.symptoms.see(event)


def events(leading: FollowedLeader, look_round: Callable[[], None]) -> Iterator[Followed]:
    """What comes, however long it takes; `look_round` is called meanwhile. Raises LeaderGone."""
    while True:
        event = leading.receive(PATIENCE_S)
        look_round()
        if event is not None:
            yield event


def write_log(folder: Path, text: LogText) -> None:
    """Keep what a launch wrote on a host; told again, it is kept once. Raises RunFolderError."""
    path = folder / Path(text.name).name
    left_out = f"# broadgauge: {text.left_out_bytes} bytes before this are left out\n"
    told = ((left_out if text.left_out_bytes else "") + text.text).encode()
    with writing(path), open(path, "a+b", opener=private) as file:
        file.seek(0)
        if told not in file.read():
            file.write(told)


@dataclass(slots=True, kw_only=True)
class FollowedLaunch:
    """A launch of a leader's. Made by `platform.LedPlatform`."""

    leading: FollowedLeader
    life: ReportedLife
    known: Environment
    logs: LaunchLogs
    begun: TrialBegins
    """The trial that has begun already."""
    left: list[str]
    """Trials of this life that are still to be asked for."""
    loss_words: Callable[[AgentLost], str]
    """Of an agent, for people."""
    lose_leader: Callable[[str], None]
    """Told when it is gone, and why."""
    take_note: Callable[[str], None]
    """Told what the user should know."""
    look_round: Callable[[], None] = lambda: None
    """Called once in a while."""
    _has_ended: bool = False
    _adapters: list[AdaptersUsed] = field(default_factory=list)
    """Said of the trial that runs."""

    @property
    def environment(self) -> Environment:
        return self.known

    @property
    def is_alive(self) -> bool:
        """Does this life come to the trial that is asked for next?

        The leader may have run others between them that are not wanted any more, and ended it.
        """
        if self.left and not self._has_ended:
            try:
                self._has_ended = not self._comes_to(self.left[0])
            except LeaderGone as gone:
                self._has_ended = True
                self.lose_leader(str(gone))
        return not self._has_ended

    def _comes_to(self, trial_id: str) -> bool:
        """Hear it up to there. Raises LeaderGone."""
        for event in events(self.leading, self.look_round):
            match event:
                case TrialBegins(trial_id=begun) if begun == trial_id:
                    self.leading.hold()
                    return True
                case LogText():
                    write_log(self.logs.folder, event)
                case LifeEnds():
                    return False
                case LifeBegins() | JobsDone():
                    self.leading.hold()
                    return False
                case _:
                    pass
        raise AssertionError("events do not end")

    def run_trial(self, request: TrialRequest, progress: TrialProgress) -> TrialOutcome:
        """Follow the leader through this trial; what goes wrong is a failed outcome."""
        heard = TrialEvents(num_ranks=self.life.num_ranks)
        self._adapters.clear()
        began_s, ended_s = self.begun.unix_s, self.begun.unix_s
        error: TrialError | None = None
        ends: TrialEnds | None = None
        try:
            ends, lost = self._follow(request, heard, progress)
            error = self._cause(heard.symptoms, lost)
            if error is None and len(heard.done) < heard.num_ranks:
                error = lost_launcher("the launch was ended before the trial was done")
            began_s, ended_s = self.begun.unix_s, ends.unix_s
        except LeaderGone as gone:
            self._has_ended = True
            self.lose_leader(str(gone))
            error = self._cause(heard.symptoms, lost_launcher(str(gone)))
        self.left = [each for each in self.left if each != request.trial_id]
        if error is not None:
            self._has_ended = True
        told = self.logs.of_trial(request.case, error)
        adapters: tuple[Finding, ...] = ()
        if error is None:  # the leader does not know of what is found here: its life goes on
            adapters = findings_of_adapters(request.case, self._adapters, told.nccl)
            error = told.error or transport_error(next(iter(adapters), None))
        for note in heard.notes:
            self.take_note(f"network {request.case.network_name}: {note}")
        return TrialOutcome(
            status=status_of(error) if error is not None else Status.OK,
            started_unix_s=began_s,
            ended_unix_s=ended_s,
            error=error,
            messages=tuple(tuple(messages) for messages in heard.messages),
            marks=tuple(heard.marks),
            link=heard.link,
            clocks=() if ends is None else clock_facts(ends),
            launch_id=self.life.life_id,
            nccl=told.nccl,
            findings=(*told.findings, *adapters),
        )

    def close(self) -> None:
        """The leader ends it by itself when its trials are done; then its logs come."""
        if not self._has_ended and not self.left:
            with suppress(LeaderGone):
                self._hear_its_end()
        self._has_ended = True

    def _hear_its_end(self) -> None:
        """Raises LeaderGone."""
        deadline_s = time.monotonic() + END_LIMIT_S
        while (left_s := deadline_s - time.monotonic()) > 0:
            match self.leading.receive(left_s):
                case LogText() as text:
                    write_log(self.logs.folder, text)
                case LifeEnds() | JobsDone():
                    return
                case _:
                    pass

    def _cause(self, symptoms: Symptoms, lost: TrialError | None) -> TrialError | None:
        """Where an agent or the leader is lost, ranks elsewhere often say first that they wait."""
        told = symptoms.error(self._logs)
        if lost is None or told is None:
            return told or lost
        if not symptoms.are_of_others(self._logs):
            return told
        message = f"{lost.message}; before that {told.message}"
        return lost.model_copy(update={"message": message, "last_lines": told.last_lines})

    @property
    def _logs(self) -> tuple[Path, ...]:
        return logs_of(self.logs.folder, self.life.life_id, self.life.num_ranks)

    def _follow(
        self, request: TrialRequest, heard: TrialEvents, progress: TrialProgress
    ) -> tuple[TrialEnds, TrialError | None]:
        """Take in all of the trial; which agent or supervisor was lost. Raises LeaderGone."""
        lost: TrialError | None = None
        has_begun = self.begun.trial_id == request.trial_id
        for event in events(self.leading, self.look_round):
            match event:
                case TrialBegins(trial_id=request.trial_id):
                    self.begun, has_begun = event, True
                case TrialEnds(trial_id=request.trial_id) if has_begun:
                    return event, lost
                case LogText():
                    write_log(self.logs.folder, event)
                case AgentLost():
                    lost = lost or lost_launcher(self.loss_words(event))
                case Refused():
                    lost = lost or lost_launcher(event.message)
                case LifeEnds() | JobsDone() if not has_begun:
                    raise LeaderGone(f"the leader did not run {request.trial_id}")
                case LifeBegins() | LifeEnds() | TrialBegins() | TrialEnds() | JobsDone():
                    pass
                case PreflightDone():
                    pass
                case AdaptersUsed():
                    self._adapters.append(event)
                case _ if has_begun:
                    heard.take(event, progress)
        raise AssertionError("events do not end")


def lost_launcher(message: str) -> TrialError:
    return TrialError(kind=ErrorKind.LAUNCHER_LOST, message=message)


def clock_facts(ends: TrialEnds) -> tuple[ClockFacts, ...]:
    """Of each agent that was asked before and after the trial."""
    after = {reading.agent: reading for reading in ends.clocks_after}
    return tuple(
        ClockFacts(
            node=before.agent,
            offset_s=before.offset_s,
            drift_s=after[before.agent].offset_s - before.offset_s,
            uncertainty_s=max(before.uncertainty_s, after[before.agent].uncertainty_s),
        )
        for before in ends.clocks_before
        if before.agent in after
    )


_: type[Launch] = FollowedLaunch
