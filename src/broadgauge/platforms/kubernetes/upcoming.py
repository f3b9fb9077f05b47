"""Which job will a run have next: of which kind, where, of what name? Before it is made."""

from dataclasses import dataclass
from pathlib import Path

from broadgauge.manifests.run_job import MakeRunJob, RunJob
from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.api_errors import ApiError
from broadgauge.platforms.kubernetes.job_place import JobPlace, run_label
from broadgauge.platforms.kubernetes.job_states import AUTO, choice_words, choose_kind
from broadgauge.platforms.kubernetes.refusals import refusal
from broadgauge.specs.kubernetes.settings import JobKind, Kubernetes


@dataclass(frozen=True, slots=True)
class ChosenKind:
    """Where and as what a job is made."""

    api: Api
    namespace: str
    kind: JobKind
    words: str
    """`as a Job, which every cluster has; …`."""


def chosen_kind(settings: Kubernetes, beside: JobPlace | None = None) -> ChosenKind:
    """In the cluster and, where the experiment names none, the namespace of the user's kubeconfig.

    `beside`: another job of the run, whose cluster and namespace it gets.

    Raises InputError where there is no kubeconfig; PlatformError where nobody answers, or the
    cluster has not the kind that is asked for.
    """
    api = Api.connect(None if beside is None else beside.context)
    asked = settings.job if "job" in settings.model_fields_set else AUTO
    try:
        kind = choose_kind(api, asked)
    except ApiError as error:
        raise refusal(error, "looking for what the cluster can run") from error
    own = settings.namespace or api.default_namespace
    namespace = own if beside is None else beside.namespace
    return ChosenKind(api, namespace, kind, choice_words(kind, asked))


@dataclass(frozen=True, slots=True)
class UpcomingJob:
    """Its orders name its networks, which are known by what it is made of."""

    api: Api
    place: JobPlace
    run: RunJob
    words: str
    """Of its kind, for people."""


class JobsOfRun:
    """One after another: each that is lost has a successor of another name, beside it."""

    def __init__(
        self, settings: Kubernetes, make_job: MakeRunJob, experiment: str, logs: Path
    ) -> None:
        """`experiment`: its name. `logs`: of the run folder, which tells runs apart."""
        self._settings = settings
        self._make_job = make_job
        self._experiment = experiment
        self._logs = logs
        self._earlier: JobPlace | None = None
        """Whatever the kubeconfig's context is by now."""
        self._next_number = 0
        self._upcoming: UpcomingJob | None = None
        self._made: dict[str, RunJob] = {}
        """By the job's name."""

    def has_had(self, place: JobPlace) -> None:
        """By an earlier life of the tool."""
        self._earlier = place
        self._next_number = max(self._next_number, place.number + 1)

    def next(self) -> UpcomingJob:
        """The same until it is taken. Raises InputError, PlatformError."""
        if self._upcoming is None:
            chosen = chosen_kind(self._settings, self._earlier)
            place = self._new_place(chosen)
            self._upcoming = UpcomingJob(chosen.api, place, self.run_at(place), chosen.words)
        return self._upcoming

    def take(self) -> UpcomingJob:
        """To make it. Raises InputError, PlatformError."""
        taken, self._upcoming = self.next(), None
        return taken

    def run_at(self, place: JobPlace) -> RunJob:
        """What the job is made of; found out once. Raises InputError."""
        if place.name not in self._made:
            self._made[place.name] = self._make_job(
                kind=place.kind, namespace=place.namespace, run=place.run, name=place.name
            )
        return self._made[place.name]

    def _new_place(self, chosen: ChosenKind) -> JobPlace:
        number = self._next_number
        self._next_number += 1
        run = run_label(self._settings.name or self._experiment, str(self._logs.absolute()))
        self._earlier = JobPlace(
            context=chosen.api.context,
            namespace=chosen.namespace,
            run=run,
            name=run if number == 0 else f"{run}-r{number}",  # an indexed Job numbers its own pods
            kind=chosen.kind,
            number=number,
        )
        return self._earlier
