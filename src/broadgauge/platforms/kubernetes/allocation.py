"""Which pods are a run's, and what of a case is known before and after they run?"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from broadgauge.agent.facts import HOST_FACTS, HostFacts
from broadgauge.manifests.run_job import (
    MakeRunJob,
    RunJob,
    asked_network_of,
    cores_of,
    order_key,
    run_secret,
)
from broadgauge.messages.codec import DecodeError
from broadgauge.messages.leader import INTERFACES_WORD, MASTER_WORD, TakeJobs
from broadgauge.messages.proof import new_token
from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.checks import check_before
from broadgauge.platforms.kubernetes.cluster_facts import cluster_facts
from broadgauge.platforms.kubernetes.job_place import JobPlace, place_file
from broadgauge.platforms.kubernetes.kept_results import KeptResults
from broadgauge.platforms.kubernetes.making import RunObjects
from broadgauge.platforms.kubernetes.orders import order_bytes
from broadgauge.platforms.kubernetes.ownership import found_again
from broadgauge.platforms.kubernetes.refusals import AlreadyThereError
from broadgauge.platforms.kubernetes.running_job import RunningJob
from broadgauge.platforms.kubernetes.upcoming import JobsOfRun
from broadgauge.platforms.launch_folders import LaunchFolders
from broadgauge.platforms.led.allocation import Allocation, Say
from broadgauge.platforms.led.dry_run_lines import command_lines
from broadgauge.platforms.led.environment import machines_environment
from broadgauge.platforms.led.launch import ReportedLife
from broadgauge.platforms.led.orders import Seat, Seats
from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError, LaunchError, PlatformError, RunFolderError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.launching import LaunchRequest
from broadgauge.specs.records.record import Environment
from broadgauge.specs.secrets.values import SecretText, SecretTexts


class PodsAllocation:
    """The pods of one job, for all cases of a run."""

    def __init__(
        self,
        folders: LaunchFolders,
        experiment: Experiment,
        make_job: MakeRunJob,
        secrets: SecretTexts,
    ) -> None:
        """`secrets`: variables that ranks get and that stand in no order."""
        self._folders = folders
        self._experiment = experiment
        self._settings = experiment.kubernetes
        self._make_job = make_job
        self._secrets = secrets
        self._file = place_file(folders.logs)
        self._jobs = JobsOfRun(self._settings, make_job, experiment.name, folders.logs)
        self._kept = KeptResults(run_at=self._jobs.run_at, say=self._tell)
        self._leader: RunningJob | None = None
        self._known_over: str | None = None
        """Why the job was over when it was found: whoever resumed knows."""
        self._facts: dict[str, dict[str, str | None]] = {}
        self._say: Say = lambda _: None

    @property
    def notes(self) -> Iterable[str]:
        """Known before anything is asked of the cluster: nothing."""
        return ()

    def tell_to(self, say: Say) -> None:
        """Its watches and logs have threads of their own."""
        self._say = say

    def find(self) -> RunningJob | None:
        """The leader that the run folder knows of. Raises PlatformError, RunFolderError."""
        if self._leader is None:
            place = self._file.read()
            if place is None:
                return None
            self._jobs.has_had(place)
            if place.is_gone:
                return None
            api = Api.connect(place.context)
            self._leader = self._job_at(api, found_again(api, place))
        return self._leader

    def start(self, first: TakeJobs, show: Say) -> RunningJob:
        """A job with this order; its pods run when it comes back. Raises InputError,
        PlatformError, RunFolderError."""
        self._kept.show = show
        coming = self._jobs.take()
        api, place, run = coming.api, coming.place, coming.run
        orders = {order_key(0): order_bytes(first)}
        values = {name: self._secret(name) for name in run.looked_up}
        objects = RunObjects.of(run, orders, run_secret(run, SecretText(new_token()), values))
        show(f"asking what namespace {place.namespace} would refuse")
        check_before(api, objects, place.namespace, self._say)
        self._file.write(place)  # a tool that is killed must find what it has made
        pods = "1 pod" if run.num_pods == 1 else f"{run.num_pods} pods"
        show(f"creating {place.name} in namespace {place.namespace}, {coming.words}: {pods}")
        leader = self._leader = self._job_at(api, place)
        owner = None
        try:
            owner = objects.claim(api, place.namespace, self._say)
            made = objects.create(api, place.namespace, owner, self._say)
            leader.is_created(made, run.num_pods)
            self._file.write(leader.place)
            leader.wait_for_pods(run.num_pods, _limit_s(run), show)
        except BaseException as error:  # a Ctrl-C, too: what was made is given back
            is_anothers = owner is None and isinstance(error, AlreadyThereError)
            if not is_anothers and leader.stop():
                self.forget()
            raise
        return leader

    def wait_for_found(self, show: Say) -> None:
        """Its pods may be waiting still. Raises PlatformError where they can't run."""
        self._kept.show = show
        leader = self.find()
        if leader is None:
            return
        self._known_over = leader.why_over()
        if leader.place.uid is None or not leader.is_coming_up():
            return
        run = self._jobs.run_at(leader.place)
        try:
            leader.wait_for_pods(run.num_pods, _limit_s(run), show)
        except PlatformError as error:
            if leader.is_coming_up():
                raise
            self._say(str(error))  # it has failed meanwhile: what it kept is heard

    def forget(self) -> None:
        """Its job is gone; where it was stays known."""
        self._file.forget()
        leader, self._leader = self._leader, None
        if leader is not None:
            leader.watch.close()
            with suppress(RunFolderError):  # a full disk: `run --resume` asks the kubeconfig then
                self._file.write(replace(leader.place, is_gone=True))

    def why_over(self) -> str | None:
        """Somebody has deleted its job, or its `deadline_s` is over."""
        why = None if self._leader is None else self._leader.why_over()
        return None if why == self._known_over else why

    def lose(self) -> None:
        """Its job is deleted: its operator, or a queue, would make pods of it again, which measure
        beside those of its successor. Raises PlatformError where it can't be; it stays known then.
        """
        leader = self.find()
        if leader is not None and not leader.stop() and not leader.is_gone():
            raise PlatformError(
                f"{leader.name} was lost, and it can't be told whether it goes on",
                hint="`broadgauge run --resume` goes on once it is deleted",
            )
        self.forget()

    def seats_of(self, case: Case) -> Seats:
        """Known in the pods only: the leader and the agents fill in the words. Raises InputError,
        PlatformError."""
        leader = self._leader
        run = self._jobs.next().run if leader is None else self._jobs.run_at(leader.place)
        return seats_in(run, case)

    def agent_name(self, number: int) -> str:
        """Its pod and node."""
        return f"node {number}" if self._leader is None else self._leader.pod_name(number)

    def why_lost(self, number: int) -> str | None:
        """`failed (container pytorch: OOMKilled, exit code 137)`."""
        return None if self._leader is None else self._leader.why_ended(number)

    def notes_on(self, case: Case) -> Iterable[str]:
        """Say where what we tell each other shares a network with what is measured."""
        face = None if case.link is None else case.link.kubernetes
        if case.link is not None and face is not None and face.attachment == "pod":
            yield (
                f"network {case.link.name} is also the control network: between timed parts it "
                "carries what ranks say, in them a sign of life every 10 s"
            )

    def environment(self, case: Case, life: ReportedLife) -> Environment:
        """What the pods said of themselves. Raises LaunchError where one says nothing usable."""
        return machines_environment(
            "kubernetes",
            case,
            tuple(_facts(hello.hostname, hello.facts, hello.place) for hello in life.agents),
            self.seats_of(case),
            life.hellos[0],
            folders=self._folders,
            found=life.variables,
            cluster=self._cluster_facts(),
        )

    def rank_commands(self, request: LaunchRequest) -> tuple[str, ...]:
        """The environment and command of each rank; `{…}` is filled in where it runs. No cluster is
        asked. Raises InputError."""
        case, settings = request.cases[0], self._settings
        run = self._make_job(kind=settings.job, namespace=settings.namespace, run="run", name="run")
        seats = seats_in(run, case)
        return tuple(
            line
            for node in range(case.nodes)
            for line in command_lines(request, node, seats, f"pod {node}", settings.python)
        )

    def _job_at(self, api: Api, place: JobPlace) -> RunningJob:
        return RunningJob(
            api, place, self._file, self._folders.logs, self._tell, kept=self._kept.attach
        )

    def _secret(self, name: str) -> SecretText:
        """Raises InputError."""
        if name not in self._secrets:  # `run --resume` asks for those of the cases that are left
            raise InputError(
                f"`{name}` is not set in your environment, and all pods of a run get it",
                hint=f"export {name}=…, then the same command again",
            )
        return self._secrets[name]

    def _cluster_facts(self) -> dict[str, str | None]:
        """Read once a job; none where its pods can't be looked at now."""
        leader = self._leader
        if leader is None:
            return {}
        name = leader.place.name
        if name not in self._facts:
            try:
                pods = list(leader.pods().values())
            except PlatformError:
                return {}
            self._facts[name] = cluster_facts(leader.api, pods)
        return self._facts[name]

    def _tell(self, text: str) -> None:
        """To whoever listens by then."""
        self._say(text)


_: type[Allocation] = PodsAllocation


def seats_in(run: RunJob, case: Case) -> Seats:
    """With words for what is known in the pods alone. A case of one node needs no network."""
    network = asked_network_of(run, case)
    interfaces = ("lo",) if network is None else (INTERFACES_WORD,)
    seat = Seat(num_cores=cores_of(run, case), interfaces=interfaces)
    return Seats(seats=(seat,) * case.nodes, master_address=MASTER_WORD, network=network)


def _limit_s(run: RunJob) -> float:
    """Pods that wait for their data set are not late."""
    prepare = run.settings.prepare if run.preparation is not None else None
    return run.settings.pending_limit_s + (0.0 if prepare is None else prepare.wait_limit_s)


def _facts(hostname: str, told: dict[str, Any] | None, place: dict[str, str]) -> HostFacts:
    """Raises LaunchError."""
    try:
        facts = HOST_FACTS(told)
    except DecodeError as error:
        raise LaunchError(f"{hostname}: what it says of itself can't be read: {error}") from error
    return replace(facts, hostname=place.get("node", hostname))
