"""Where do cases run on machines that the user's ssh reaches? A leader there holds the launches."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from broadgauge.agent.facts import HostFacts
from broadgauge.agent.taken_cores import TakenCores
from broadgauge.messages.leader import TakeJobs
from broadgauge.messages.preflight import PreflightMode
from broadgauge.platforms.hosts.allocation import AttachedLeader, attach, start_allocation, stop
from broadgauge.platforms.hosts.checking import notes_on, read_hosts, refuse_differences
from broadgauge.platforms.hosts.interfaces import interfaces_of
from broadgauge.platforms.hosts.leader_place import LeaderPlace, leader_file
from broadgauge.platforms.hosts.seats import seats_on
from broadgauge.platforms.launch_folders import LaunchFolders
from broadgauge.platforms.led.allocation import Allocation, Say
from broadgauge.platforms.led.dry_run_lines import command_lines
from broadgauge.platforms.led.environment import machines_environment
from broadgauge.platforms.led.launch import ReportedLife
from broadgauge.platforms.led.orders import Seats
from broadgauge.platforms.led.platform import LedPlatform
from broadgauge.specs.case import Case
from broadgauge.specs.errors import PlatformError, RunFolderError
from broadgauge.specs.launching import LaunchRequest
from broadgauge.specs.machines.hosts import Host
from broadgauge.specs.records.record import Environment
from broadgauge.specs.secrets.values import Secrets


@dataclass(frozen=True, slots=True)
class HostsLeader:
    """A leader on a host."""

    place: LeaderPlace

    @property
    def name(self) -> str:
        """Its host, as ssh takes it."""
        return self.place.host

    def attach(self, after: int) -> AttachedLeader:
        """Hear it from its event after this one. Raises NoLeader, LinkLost."""
        return attach(self.place, after)

    def stop(self) -> bool:
        """Have it and its agents end and leave nothing; False: nobody knows whether it did."""
        return stop(self.place)


class HostsAllocation:
    """The hosts of an experiment."""

    def __init__(
        self,
        folders: LaunchFolders,
        hosts: Sequence[Host],
        facts: Sequence[HostFacts],
        secrets: dict[str, str],
    ) -> None:
        """`secrets`: variables that ranks get and that stand in no order."""
        self._folders = folders
        self._file = leader_file(folders.logs)
        self._hosts = tuple(hosts)
        self._facts = tuple(facts)
        self._secrets = secrets

    @property
    def notes(self) -> tuple[str, ...]:
        """How they differ from each other."""
        return notes_on(self._hosts, self._facts)

    def tell_to(self, say: Say) -> None:
        """All is said before they are used."""
        del say

    def find(self) -> HostsLeader | None:
        """The leader that the run folder knows of. Raises RunFolderError."""
        place = self._file.read()
        return None if place is None else HostsLeader(place)

    def start(self, first: TakeJobs, show: Say) -> HostsLeader:
        """A leader that is yet to be given jobs. Raises PlatformError, RunFolderError."""
        del first, show  # they answer at once, and are given what they do then
        place = start_allocation(self._hosts, self._facts, self._secrets)
        try:
            self._file.write(place)
        except RunFolderError:
            stop(place)
            raise
        return HostsLeader(place)

    def wait_for_found(self, show: Say) -> None:
        """Hosts are there."""
        del show

    def forget(self) -> None:
        """The leader is gone."""
        self._file.forget()

    def why_over(self) -> None:
        """Whoever ends it there does not say why."""

    def lose(self) -> None:
        """Agents end by themselves where their leader has ended. Raises PlatformError where nobody
        can tell; it stays known then."""
        leader = self.find()
        if leader is not None and not leader.stop():
            raise PlatformError(
                f"the leader on {leader.name} was lost, and it can't be told whether it goes on",
                hint="`broadgauge run --resume` goes on once that host can be reached",
            )
        self.forget()

    def seats_of(self, case: Case) -> Seats:
        """The first hosts. Raises LaunchError where one has no interface of the network."""
        return seats_on(case, self._facts, self._hosts[0].ssh)

    def agent_name(self, number: int) -> str:
        """As ssh takes it."""
        return self._hosts[number].ssh

    def why_lost(self, number: int) -> None:
        """Nobody runs a host."""
        del number

    def notes_on(self, case: Case) -> Iterable[str]:
        """Say where what we tell each other shares a NIC with what is measured."""
        control = self._facts[0].reached_at
        own = {each.name for each in self._facts[0].interfaces if each.address == control}
        shared = own & set(interfaces_of(case, self._facts[0]))
        if case.link is not None and shared:
            yield (
                f"network {case.link.name} is also the control network ({', '.join(shared)}): "
                "between timed parts it carries what ranks say, in them a sign of life every 10 s"
            )

    def environment(self, case: Case, life: ReportedLife) -> Environment:
        """The first host's, and what rank 0 said of its libraries."""
        return machines_environment(
            "hosts", case, self._facts, self.seats_of(case), life.hellos[0], folders=self._folders
        )

    def rank_commands(self, request: LaunchRequest) -> tuple[str, ...]:
        """The environment and command of each rank, as a shell on its host would take them."""
        case, seats = request.cases[0], self.seats_of(request.cases[0])
        return tuple(
            line
            for node, host in enumerate(self._hosts[: case.nodes])
            for line in command_lines(request, node, seats, host.ssh, host.python)
        )


_: type[Allocation] = HostsAllocation


class HostsPlatform(LedPlatform):
    """The hosts of an experiment."""

    def __init__(
        self,
        folders: LaunchFolders,
        hosts: Sequence[Host],
        *,
        secrets: Secrets,
        cases: Sequence[Case],
        facts: Sequence[HostFacts] | None = None,
        preflight: PreflightMode = "no",
    ) -> None:
        """`cases`: of the whole plan: their secrets go to the agents. `facts`: where they were
        read already. `preflight`: before the first launch, of a leader that is started here.
        Raises PlatformError where a host can't be used."""
        known = tuple(facts) if facts is not None else read_hosts(hosts)
        refuse_differences(hosts, known)
        values = {name: secret.reveal() for name, secret in secrets.values_of(cases).items()}
        super().__init__(folders, HostsAllocation(folders, hosts, known, values), preflight)
        both = zip(hosts, known, strict=True)
        self._taken = {host.ssh: facts.taken for host, facts in both if facts.taken is not None}

    @property
    def taken_cores(self) -> Mapping[str, TakenCores]:
        """What others had of each host's cores while it was asked for its facts."""
        return self._taken
