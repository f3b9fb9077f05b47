"""Which pods are a run's, and what of a case is known before and after they run?"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from broadgauge.agent.facts import HOST_FACTS, HostFacts
from broadgauge.manifests.labels import (
    OWNER,
    TOKEN_VARIABLE,
    JobKind,
    labels_of,
    secrets_name,
)
from broadgauge.manifests.memory_need import NeedOf, nothing_known
from broadgauge.manifests.prepare import prepare_file
from broadgauge.manifests.request import JobRequest
from broadgauge.messages.codec import DecodeError
from broadgauge.messages.leader import Job, TakeJobs
from broadgauge.messages.proof import new_token
from broadgauge.platforms.kubernetes.admission import Admission, Held
from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.api_errors import ApiError
from broadgauge.platforms.kubernetes.checks import check_before
from broadgauge.platforms.kubernetes.cluster_facts import FactsOfJobs
from broadgauge.platforms.kubernetes.job_place import (
    JobNumbers,
    JobPlace,
    PlaceFile,
    run_label,
    this_owner,
)
from broadgauge.platforms.kubernetes.job_states import RESOURCES, choose_kind, trouble_of
from broadgauge.platforms.kubernetes.kept_results import KeptResults
from broadgauge.platforms.kubernetes.owned import create_all
from broadgauge.platforms.kubernetes.owner_references import give_to_job, owned_by, parted
from broadgauge.platforms.kubernetes.ownership import found_again
from broadgauge.platforms.kubernetes.pods_leader import PodsLeader
from broadgauge.platforms.kubernetes.preparing import Preparing
from broadgauge.platforms.kubernetes.refusals import refusal
from broadgauge.platforms.kubernetes.requests import JobMaker
from broadgauge.platforms.kubernetes.running_job import RunningJob, order_bytes
from broadgauge.platforms.launch_folders import LaunchFolders
from broadgauge.platforms.led.dry_run_lines import command_lines
from broadgauge.platforms.led.environment import machines_environment
from broadgauge.platforms.led.launch import ReportedLife
from broadgauge.platforms.led.orders import Seats
from broadgauge.platforms.led.platform import Allocation, Say
from broadgauge.specs.case import Case
from broadgauge.specs.errors import LaunchError, PlatformError, RunFolderError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.launching import LaunchRequest
from broadgauge.specs.record import Environment


class PodsAllocation:
    """The pods of one job, for all cases of a run."""

    def __init__(
        self,
        folders: LaunchFolders,
        experiment: Experiment,
        cases: Sequence[Case],
        secrets: dict[str, str],
        *,
        numbers: JobNumbers | None = None,
        need_of: NeedOf = nothing_known,
    ) -> None:
        """`secrets`: variables that ranks get and that stand in no order. `numbers`: of the run's
        jobs, where each case has its own; None: this is the only allocation. `need_of`: how much
        memory cases need."""
        self._folders = folders
        names = tuple(sorted(secrets))
        self._maker = JobMaker(
            experiment, tuple(cases), folders, names, need_of, owner=this_owner()
        )
        self._secrets = secrets
        self._file = PlaceFile(folders.logs)
        self._leader: PodsLeader | None = None
        self._next: tuple[Api, JobPlace] | None = None
        """Where the next job will be: known before its orders are made, which name its networks."""
        self._numbers = numbers or JobNumbers()
        self._case = None if numbers is None else cases[0].key
        self._facts = FactsOfJobs()
        self._notes: dict[str, None] = {}

    @property
    def notes(self) -> Iterable[str]:
        """Known before anything is asked of the cluster: nothing."""
        return ()

    def find(self) -> PodsLeader | None:
        """The leader that the run folder knows of. Raises PlatformError.

        One of another case has nothing to do for this one, and is ended.
        """
        if self._leader is None:
            place = self._file.read()
            if place is None:
                return None
            self._numbers.after(place.number)
            api = Api.connect(place.context)
            if place.case != self._case:
                if self._leader_at(api, place, self._note).stop():
                    self._file.forget()
                return None
            self._leader = self._leader_at(api, found_again(api, place), self._note)
        return self._leader

    def start(self, jobs: tuple[Job, ...], say: Say, show: Say) -> PodsLeader:
        """A job with these orders; its pods run when it comes back. Raises PlatformError."""
        settings = self._maker.experiment.kubernetes
        api, place = self._upcoming()
        namespace, self._next = place.namespace, None
        request = self._maker.request(place, order_bytes(TakeJobs(generation=0, jobs=jobs)))
        secret, objects = self._secret(request), _objects(request)
        check_before(api, request, namespace, [secret, *objects, *_preparing(request)], say)
        show(f"creating {place.kind} {place.name} with {request.num_pods} pods in {namespace}")
        for note in self._write(place):
            say(note)
        leader = self._leader = self._leader_at(api, place, say)
        try:
            first, others = parted(request, objects)
            (owner,) = create_all(api, namespace, [first], say)
            create_all(api, namespace, owned_by(owner, request, [secret]), say)
            Preparing(
                api=api,
                namespace=namespace,
                request=request,
                log_folder=self._folders.logs,
                say=say,
                show=show,
                owner=owner,
            ).run(settings.pending_limit_s)
            made = create_all(api, namespace, owned_by(owner, request, others), say)
            leader.job.is_created(made, request.num_pods)
            self._write(leader.job.place)
            give_to_job(api, namespace, request, owner=owner, made=made, say=say)
            admission = Admission(api=api, namespace=namespace)
            leader.job.wait_for_pods(
                request.num_pods,
                settings.pending_limit_s,
                show,
                lambda: _queued(api, place, admission),
            )
        except BaseException:  # a Ctrl-C, too: what was made is given back
            if leader.stop():
                self.forget()
            raise
        return leader

    def forget(self) -> None:
        """Its job is gone."""
        self._file.forget()
        self._leader = None

    def lose(self) -> None:
        """Its job is deleted: a queue, or its operator, would make pods of it again, which measure
        beside those of its successor. Raises PlatformError where it can't be; it stays known then.
        """
        leader = self.find()
        if leader is not None and not leader.stop() and not leader.job.is_gone():
            raise PlatformError(
                f"{leader.name} was lost, and it can't be told whether it goes on",
                hint="`broadgauge run --resume` goes on once it is deleted",
            )
        self.forget()

    def seats_of(self, case: Case) -> Seats:
        """Known in the pods only: the leader and the agents fill in the words.

        Raises PlatformError.
        """
        return self._seats(case, self._upcoming()[1] if self._job is None else self._job.place)

    def _seats(self, case: Case, place: JobPlace) -> Seats:
        return self._maker.seats(case, place)

    def agent_name(self, number: int) -> str:
        """Its pod and node."""
        return f"node {number}" if self._job is None else self._job.pod_name(number)

    def notes_on(self, case: Case) -> Iterable[str]:
        """Say where what we tell each other shares a network with what is measured."""
        found = None if case.link is None else case.link.found
        if case.link is not None and found is not None and found.attachment == "pod":
            yield (
                f"network {case.link.name} is also the control network: between timed parts it "
                "carries what ranks say, in them a sign of life every 10 s"
            )
        yield from self._notes

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
            cluster=self._facts.of(self._job),
        )

    def rank_commands(self, request: LaunchRequest) -> tuple[str, ...]:
        """The environment and command of each rank; `{…}` is filled in where it runs."""
        case = request.cases[0]
        place = JobPlace(
            context=None,
            namespace=self._maker.experiment.kubernetes.namespace or "default",
            run="run",
            name="run",
            kind="pytorchjob",
            number=0,
        )
        seats, python = self._seats(case, place), self._maker.experiment.kubernetes.python
        return tuple(
            line
            for node in range(case.nodes)
            for line in command_lines(request, node, seats, f"pod {node}", python)
        )

    @property
    def _job(self) -> RunningJob | None:
        return None if self._leader is None else self._leader.job

    def _leader_at(self, api: Api, place: JobPlace, say: Say) -> PodsLeader:
        job = RunningJob(api, place, self._file, self._folders.logs, say)
        kept = KeptResults(
            api=api,
            place=place,
            volume=self._maker.experiment.kubernetes.results,
            make_request=lambda: self._maker.request(place, b""),
            say=say,
        )
        return PodsLeader(job, kept)

    def _upcoming(self) -> tuple[Api, JobPlace]:
        """Raises PlatformError."""
        if self._next is None:
            settings = self._maker.experiment.kubernetes
            api = Api.connect(settings.context)
            try:
                kind = choose_kind(api, settings.job)
            except ApiError as error:
                raise refusal(error, "looking for what the cluster can run") from error
            namespace = settings.namespace or api.default_namespace
            self._next = api, self._new_place(api.context, namespace, kind)
        return self._next

    def _new_place(self, context: str | None, namespace: str, kind: JobKind) -> JobPlace:
        number = self._numbers.take()
        run = run_label(self._maker.experiment.name, str(self._folders.logs.absolute()))
        name = run if number == 0 else f"{run}-r{number}"  # an indexed Job numbers its own pods
        return JobPlace(
            context=context,
            namespace=namespace,
            run=run,
            name=name,
            kind=kind,
            number=number,
            case=self._case,
        )

    def _write(self, place: JobPlace) -> tuple[str, ...]:
        """Before anything is created: a tool that is killed must find what it has made."""
        try:
            self._file.write(place)
        except OSError as error:
            raise RunFolderError(
                f"{self._file.folder} can't be written: {error.strerror or error}",
                hint="free some space, then `broadgauge run --resume` goes on",
            ) from error
        return (f"the run is {place.kind} {place.name} in namespace {place.namespace}",)

    def _secret(self, request: JobRequest) -> dict[str, Any]:
        """The one object that is in no rendered file."""
        values = {TOKEN_VARIABLE: new_token(), **self._secrets}
        labels = labels_of(request.run, request.name, dict(request.settings.labels))
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": secrets_name(request.name),
                "labels": labels,
                "annotations": {OWNER: this_owner()},
            },
            "stringData": values,
        }

    def _note(self, text: str) -> None:
        self._notes[text] = None


_: type[Allocation] = PodsAllocation


def _objects(request: JobRequest) -> tuple[dict[str, Any], ...]:
    from broadgauge.manifests.rendering import render_job

    return render_job(request).objects


def _preparing(request: JobRequest) -> tuple[dict[str, Any], ...]:
    """What fetches model and data before the job; its claims are among the job's objects."""
    file = prepare_file(request)
    return () if file is None else file.objects


def _queued(api: Api, place: JobPlace, admission: Admission) -> Held | None:
    """Raises PlatformError where its operator says that it has failed."""
    try:
        job = api.find(RESOURCES[place.kind], place.namespace, place.name)
    except ApiError as error:
        if error.is_passing:  # the next look tells
            return None
        raise refusal(error, f"looking at {place.kind} {place.name}") from error
    if job is None:
        raise PlatformError(f"{place.kind} {place.name} is gone: somebody deleted it")
    trouble = trouble_of(job)
    if trouble is not None:
        raise PlatformError(f"{place.kind} {place.name}: {trouble}")
    return admission.held(job)


def _facts(hostname: str, told: dict[str, Any] | None, place: dict[str, str]) -> HostFacts:
    """Raises LaunchError."""
    try:
        facts = HOST_FACTS(told)
    except DecodeError as error:
        raise LaunchError(f"{hostname}: what it says of itself can't be read: {error}") from error
    return replace(facts, hostname=place.get("node", hostname))
