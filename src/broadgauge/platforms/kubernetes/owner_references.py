"""Who deletes what a run has, when nobody comes back? Kubernetes, by owner references.

The program's ConfigMap is made first and owns all that is made beside the job. Once the job is
there it owns that ConfigMap, so that whatever deletes the job takes everything along: its time to
live, or somebody's `kubectl delete`. Nothing waits for it: no reference blocks a deletion.
Source: Kubernetes, "Owners and Dependents", "Garbage Collection".
"""

from collections.abc import Sequence
from typing import Protocol

from broadgauge.manifests.names import Named, program_name
from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.api_errors import ApiError
from broadgauge.platforms.kubernetes.job_states import RESOURCES
from broadgauge.platforms.kubernetes.json_shapes import JsonMap
from broadgauge.platforms.kubernetes.owned import CREATE_LIMIT_S, Say
from broadgauge.platforms.kubernetes.resources import (
    ATTACHMENTS,
    CONFIG_MAPS,
    JOBS,
    SECRETS,
    SERVICES,
    resource_of,
)
from broadgauge.specs.kubernetes.settings import JobKind

_OWNED = (ATTACHMENTS, CONFIG_MAPS, JOBS, SECRETS, SERVICES)
"""No claim, which stays, and no training runtime, which stays as long as a TrainJob uses it."""


class NamedJob(Named, Protocol):
    """The run's job, as whoever renders or follows it has it."""

    @property
    def kind(self) -> JobKind:
        """As in an experiment."""
        ...


def parted(job: NamedJob, objects: Sequence[JsonMap]) -> tuple[JsonMap, list[JsonMap]]:
    """The one that is made first, and the others in their order."""
    name = program_name(job)
    (first,) = (each for each in objects if each["metadata"]["name"] == name)
    return first, [each for each in objects if each is not first]


def owned_by(owner: JsonMap, job: NamedJob, objects: Sequence[JsonMap]) -> list[JsonMap]:
    """These as they are to be made; not the run's job, which owns the owner."""
    reference = _reference(owner)

    def is_owned(body: JsonMap) -> bool:
        return resource_of(body) in _OWNED and not _is_job(job, body)

    return [
        body | {"metadata": body["metadata"] | {"ownerReferences": [reference]}}
        if is_owned(body)
        else body
        for body in objects
    ]


def give_to_job(
    api: Api,
    namespace: str,
    job: NamedJob,
    *,
    owner: JsonMap,
    made: Sequence[JsonMap],
    say: Say,
) -> None:
    """The run goes on without, and is left to `cleanup` then."""
    (there,) = (each for each in made if _is_job(job, each))
    name = owner["metadata"]["name"]
    body = {"metadata": {"ownerReferences": [_reference(there)]}}
    try:
        api.patiently(lambda: api.merge(CONFIG_MAPS, namespace, name, body), CREATE_LIMIT_S, say)
    except ApiError as error:
        say(f"what is beside the job would outlive it, until `broadgauge cleanup`: {error}")


def _is_job(job: NamedJob, body: JsonMap) -> bool:
    kind = RESOURCES[job.kind].kind
    return (body["kind"], body["metadata"]["name"]) == (kind, job.name)


def _reference(owner: JsonMap) -> JsonMap:
    about = {key: owner[key] for key in ("apiVersion", "kind")}
    return about | {key: owner["metadata"][key] for key in ("name", "uid")}
