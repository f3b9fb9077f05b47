"""Where do cases run on machines that the user's ssh reaches? A leader there holds the launches."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from broadgauge.agent.facts import HostFacts
from broadgauge.agent.taken_cores import TakenCores
from broadgauge.messages.agent import LogText
from broadgauge.messages.leader import Job, JobsDone, LifeBegins, LifeEnds, TrialBegins
from broadgauge.platforms.hosts.allocation import (
    LeaderPlace,
    forget_place,
    read_place,
    start_allocation,
    stop,
    write_place,
)
from broadgauge.platforms.hosts.checking import notes_on, read_hosts, refuse_differences
from broadgauge.platforms.hosts.environment import hosts_environment
from broadgauge.platforms.hosts.following import FollowedLeader, LeaderGone, logs_of
from broadgauge.platforms.hosts.interfaces import interfaces_of
from broadgauge.platforms.hosts.launch import FollowedLaunch, ReportedLife, events, write_log
from broadgauge.platforms.hosts.orders import Allocated, job_of, life_number, secret_names
from broadgauge.platforms.launch_folders import LaunchFolders
from broadgauge.platforms.launch_logs import LaunchLogs
from broadgauge.platforms.launch_plan import Programs
from broadgauge.platforms.reading_logs import read_logs
from broadgauge.platforms.supervised import trial_order
from broadgauge.specs.case import Case
from broadgauge.specs.errors import LaunchError, PlatformError, RunFolderError
from broadgauge.specs.hosts import Host
from broadgauge.specs.launching import LaunchRequest, TrialProgress
from broadgauge.specs.record import Phase
from broadgauge.specs.secrets import Secrets

Say = Callable[[str], None]
MOST_LOST = 5
"""Leaders or agents in a row, with no launch coming up between them; then the run is given up."""


class _AgentGone(Exception):  # noqa: N818  says what is so, and is always caught
    """No launch can come up with the agents that are left."""


class HostsPlatform:
    """The hosts of an experiment."""

    name = "hosts"

    def __init__(
        self,
        folders: LaunchFolders,
        hosts: Sequence[Host],
        *,
        secrets: Secrets,
        cases: Sequence[Case],
        facts: Sequence[HostFacts] | None = None,
    ) -> None:
        """`cases`: of the whole plan: their secrets go to the agents. `facts`: where they were
        read already. Raises PlatformError where a host can't be used."""
        self._folders = folders
        self._hosts = tuple(hosts)
        self._secrets = secrets
        self._cases = tuple(cases)
        self._facts = tuple(facts) if facts is not None else read_hosts(hosts)
        refuse_differences(self._hosts, self._facts)
        self._notes = dict.fromkeys(notes_on(self._hosts, self._facts))
        self._expected: list[LaunchRequest] = []
        self._has_changed = False
        """The leader was given others than what is expected now."""
        self._leading: FollowedLeader | None = None
        self._life: ReportedLife | None = None
        """The last that was heard of: the leader may go on with it where the tool asks for
        another."""
        self._num_lost = 0
        self._is_left = False
        self._programs = Programs()

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know; it grows as launches start."""
        return tuple(self._notes)

    @property
    def taken_cores(self) -> Mapping[str, TakenCores]:
        """What others had of each host's cores while it was asked for its facts."""
        both = zip(self._hosts, self._facts, strict=True)
        return {host.ssh: facts.taken for host, facts in both if facts.taken is not None}

    def expect(self, requests: Sequence[LaunchRequest]) -> None:
        """The leader is given all of them at once, and goes on by itself."""
        self._has_changed = bool(self._expected)
        self._expected = list(requests)

    def start(self, request: LaunchRequest, progress: TrialProgress) -> FollowedLaunch:
        """Follow the leader up to the first trial that is asked for. Raises LaunchError."""
        progress(Phase.RENDEZVOUS, f"starting ranks on {request.cases[0].nodes} hosts")
        while True:
            try:
                return self._find(request, self._lead(request, progress))
            except LeaderGone as gone:
                self._lose(f"the leader was lost: {gone}")
            except _AgentGone as gone:
                self._replace(str(gone))

    def rank_commands(self, request: LaunchRequest) -> tuple[str, ...]:
        """The environment and command of each rank, as a shell there would take them."""
        from broadgauge.platforms.hosts.dry_run_lines import shown_commands

        return shown_commands(request, self._hosts, self._allocated)

    def leave(self) -> None:
        """Let go: the run goes on there, and `run --resume` collects."""
        if self._leading is not None:
            self._leading.close()
            self._leading = None
        self._is_left = True

    def close(self) -> None:
        """End what runs there, and leave nothing on the hosts; safe to call twice.

        Also the leader of an earlier life of the tool, where the run is over before it was asked.
        """
        leading, self._leading = self._leading, None
        if leading is not None:
            leading.close()
        place = None if self._is_left else read_place(self._state_folder)
        if place is not None and stop(place):
            forget_place(self._state_folder)

    @property
    def _allocated(self) -> Allocated:
        address = self._facts[0].reached_at or self._hosts[0].ssh
        return Allocated(facts=self._facts, master_address=address)

    @property
    def _state_folder(self) -> Path:
        return self._folders.logs

    def _lead(self, request: LaunchRequest, progress: TrialProgress) -> FollowedLeader:
        """A leader that has this launch among its jobs. Raises LaunchError, LeaderGone."""

        def say(text: str) -> None:
            progress(Phase.RENDEZVOUS, text)
            self._note(text)

        if self._leading is None:
            place = read_place(self._state_folder)
            if place is not None:
                self._leading = self._found(place, say)
                if self._leading is not None:
                    return self._leading  # with what it has measured, and what it has left
        if self._leading is None:
            self._leading = self._start_leader(say)
            self._give_from(request)
        elif self._has_changed:
            self._give_from(request)
        elif not self._is_expected(request):
            self._leading.give((self._job(request),))
        return self._leading

    def _is_expected(self, request: LaunchRequest) -> bool:
        """Does the leader come to it by itself? Also to another life of a launch that it has."""
        planned, _ = life_number(request.launch_id)
        return planned in {life_number(each.launch_id)[0] for each in self._expected}

    def _found(self, place: LeaderPlace, say: Say) -> FollowedLeader | None:
        """The leader of an earlier life of the tool, with what it has measured meanwhile."""
        try:
            return FollowedLeader.of(place, -1, say)
        except LeaderGone as gone:
            self._note(f"{gone}: what is left is run again")
            forget_place(self._state_folder)
            return None

    def _start_leader(self, say: Say) -> FollowedLeader:
        """Raises LaunchError, LeaderGone."""
        place = start_allocation(self._hosts, self._facts, self._secret_values())
        try:
            self._state_folder.mkdir(0o700, parents=True, exist_ok=True)
            write_place(self._state_folder, place)
        except OSError as error:
            stop(place)
            raise RunFolderError(
                f"{self._state_folder} can't be written: {error.strerror or error}",
                hint="free some space, then `broadgauge run --resume` goes on",
            ) from error
        return FollowedLeader.of(place, -1, say)

    def _note_shared_interfaces(self, case: Case) -> None:
        """Say where what we tell each other shares a NIC with what is measured."""
        control = self._facts[0].reached_at
        own = {each.name for each in self._facts[0].interfaces if each.address == control}
        shared = own & set(interfaces_of(case, self._facts[0]))
        if case.link is not None and shared:
            self._note(
                f"network {case.link.name} is also the control network ({', '.join(shared)}): "
                "between timed parts it carries what ranks say, in them a sign of life every 10 s"
            )

    def _give_from(self, request: LaunchRequest) -> None:
        """This launch and those after it, where they were told; else this one alone."""
        assert self._leading is not None
        self._has_changed = False
        planned, _ = life_number(request.launch_id)
        names = [life_number(each.launch_id)[0] for each in self._expected]
        later = self._expected[names.index(planned) + 1 :] if planned in names else []
        self._leading.give(tuple(self._job(each) for each in (request, *later)))

    def _job(self, request: LaunchRequest) -> Job:
        return job_of(request, self._allocated, interfaces_of, trial_order, self._programs)

    def _find(self, request: LaunchRequest, leading: FollowedLeader) -> FollowedLaunch:
        """Hear the leader up to the first trial that is left.

        Raises LaunchError, LeaderGone, _AgentGone.
        """
        leading.stored()
        first = request.trials[0].trial_id
        planned, number = life_number(request.launch_id)
        life = self._life
        for event in events(leading):
            match event:
                case LifeBegins():
                    ranks = _num_ranks(request.cases[0])
                    life = ReportedLife(life_id=event.life_id, agents=event.agents, num_ranks=ranks)
                    self._life = life
                case LogText():
                    write_log(self._folders.logs, event)
                case TrialBegins(trial_id=trial_id) if life is not None and trial_id == first:
                    return self._launch(request, leading, life, event)
                case LifeEnds() if life is not None and life_number(life.life_id)[0] == planned:
                    if life_number(life.life_id)[1] >= number:
                        self._raise_failure(life, request.cases[0])
                case JobsDone():
                    self._give_from(request)
                case _ if life is not None:
                    life.take(event)
                case _:
                    pass
        raise AssertionError("events do not end")

    def _launch(
        self,
        request: LaunchRequest,
        leading: FollowedLeader,
        life: ReportedLife,
        begun: TrialBegins,
    ) -> FollowedLaunch:
        for note in life.notes:
            self._note(note)
        self._note_shared_interfaces(request.cases[0])
        self._num_lost = 0
        return FollowedLaunch(
            leading=leading,
            life=life,
            known=hosts_environment(
                request.cases[0], self._allocated, life.hellos[0], self._folders
            ),
            logs=self._logs_of(life),
            begun=begun,
            num_left=len(request.trials),
            host_names=tuple(host.ssh for host in self._hosts),
            lose_leader=lambda why: self._lose(f"the leader was lost: {why}"),
            take_note=self._note,
        )

    def _raise_failure(self, life: ReportedLife, case: Case) -> None:
        """Raises LaunchError: the ranks of this life did not come up. Raises _AgentGone."""
        if life.lost:
            raise _AgentGone(self._loss(life))
        if life.refusal is not None:
            raise LaunchError(f"{life.life_id}: {life.refusal.message}", hint=life.refusal.hint)
        logs = logs_of(self._folders.logs, life.life_id, life.num_ranks)
        error = life.symptoms.error(logs)
        message = "its ranks did not come up" if error is None else error.message
        findings = () if error is None else self._logs_of(life).of_trial(case, error).findings
        raise LaunchError(
            f"{life.life_id} did not come up: {message}", error=error, findings=findings
        )

    def _logs_of(self, life: ReportedLife) -> LaunchLogs:
        return LaunchLogs(folder=self._folders.logs, launch_id=life.life_id, read=read_logs)

    def _loss(self, life: ReportedLife) -> str:
        lost = life.lost[0]
        host = self._hosts[lost.agent].ssh
        return f"{life.life_id}: the agent on {host} was lost: {lost.message}"

    def _replace(self, why: str) -> None:
        """An agent is gone: another leader and other agents have what is left. Raises
        PlatformError."""
        if self._leading is not None:
            stop(self._leading.place)
        self._lose(why)

    def _lose(self, why: str) -> None:
        """The leader is gone: another one has what is left. Raises PlatformError."""
        if self._leading is not None:
            self._leading.close()
            self._leading = None
            forget_place(self._state_folder)
        self._num_lost += 1
        self._note(why)
        if self._num_lost > MOST_LOST:
            raise PlatformError(
                f"{self._num_lost} times in a row, at last: {why}",
                hint="`broadgauge run --resume` goes on when the hosts can be reached",
            )

    def _note(self, text: str) -> None:
        self._notes[text] = None

    def _secret_values(self) -> dict[str, str]:
        found = {}
        for name in sorted(secret_names(self._cases)):
            secret = self._secrets.find(name)
            if secret is not None:
                found[name] = secret.reveal()
        return found


def _num_ranks(case: Case) -> int:
    return case.nodes if case.workload.is_under_torchrun else case.world_size
