"""Who deletes what a run has, when nobody comes back? Kubernetes, by owner references.

The program's ConfigMap is made first and owns all that is made beside the job. Once the job is
there it owns that ConfigMap, so that whatever deletes the job takes everything along: its time to
live, or somebody's `kubectl delete`. Nothing waits for it: no reference blocks a deletion.
Source: Kubernetes, "Owners and Dependents", "Garbage Collection".
"""

from collections.abc import Sequence

from broadgauge.manifests.labels import program_name
from broadgauge.manifests.request import JobRequest
from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.api_errors import ApiError
from broadgauge.platforms.kubernetes.job_states import RESOURCES
from broadgauge.platforms.kubernetes.json_shapes import JsonMap
from broadgauge.platforms.kubernetes.owned import CREATE_LIMIT_S, Say
from broadgauge.platforms.kubernetes.resources import (
    ATTACHMENTS,
    CONFIG_MAPS,
    JOBS,
    POD_GROUPS,
    SECRETS,
    SERVICES,
    resource_of,
)

_OWNED = (ATTACHMENTS, CONFIG_MAPS, JOBS, POD_GROUPS, SECRETS, SERVICES)
"""No claim, which stays, and no training runtime: a TrainJob is not gone before its controller has
looked at it once more."""


def parted(request: JobRequest, objects: Sequence[JsonMap]) -> tuple[JsonMap, list[JsonMap]]:
    """The one that is made first, and the others in their order."""
    name = program_name(request.name)
    (first,) = (each for each in objects if each["metadata"]["name"] == name)
    return first, [each for each in objects if each is not first]


def owned_by(owner: JsonMap, request: JobRequest, objects: Sequence[JsonMap]) -> list[JsonMap]:
    """These as they are to be made; not the run's job, which owns the owner."""
    reference = _reference(owner)

    def is_owned(body: JsonMap) -> bool:
        return resource_of(body) in _OWNED and not _is_job(request, body)

    return [
        body | {"metadata": body["metadata"] | {"ownerReferences": [reference]}}
        if is_owned(body)
        else body
        for body in objects
    ]


def give_to_job(
    api: Api,
    namespace: str,
    request: JobRequest,
    *,
    owner: JsonMap,
    made: Sequence[JsonMap],
    say: Say,
) -> None:
    """The run goes on without, and is left to `cleanup` then."""
    (job,) = (each for each in made if _is_job(request, each))
    name = owner["metadata"]["name"]
    body = {"metadata": {"ownerReferences": [_reference(job)]}}
    try:
        api.patiently(lambda: api.merge(CONFIG_MAPS, namespace, name, body), CREATE_LIMIT_S, say)
    except ApiError as error:
        say(f"what is beside the job would outlive it, until `broadgauge cleanup`: {error}")


def _is_job(request: JobRequest, body: JsonMap) -> bool:
    kind = RESOURCES[request.kind].kind
    return (body["kind"], body["metadata"]["name"]) == (kind, request.name)


def _reference(owner: JsonMap) -> JsonMap:
    about = {key: owner[key] for key in ("apiVersion", "kind")}
    return about | {key: owner["metadata"][key] for key in ("name", "uid")}
