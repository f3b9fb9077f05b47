"""Which kind of job will a run be, and in which cluster? Known before anything is made of it."""

from dataclasses import dataclass

from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.api_errors import ApiError
from broadgauge.platforms.kubernetes.job_place import JobPlace
from broadgauge.platforms.kubernetes.job_states import AUTO, choice_words, choose_kind
from broadgauge.platforms.kubernetes.refusals import refusal
from broadgauge.specs.kubernetes import JobKind, Kubernetes


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
