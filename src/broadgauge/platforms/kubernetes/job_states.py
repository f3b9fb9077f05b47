"""Which kind of job can a cluster run, and what does its operator say is wrong with one?"""

from dataclasses import replace
from typing import Any, Final, Literal

from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.api_errors import ApiError, is_missing
from broadgauge.platforms.kubernetes.json_shapes import mapping, mappings
from broadgauge.platforms.kubernetes.resources import (
    JOBS,
    PYTORCH_JOBS,
    TRAIN_JOBS,
    Resource,
)
from broadgauge.specs.errors import PlatformError
from broadgauge.specs.kubernetes.settings import JobKind

AUTO: Final = "auto"
"""Asked for: the first of `RESOURCES` that the cluster has."""
RESOURCES: dict[JobKind, Resource] = {
    "trainjob": TRAIN_JOBS,
    "pytorchjob": PYTORCH_JOBS,
    "job": JOBS,
}
"""The operators' first, since a cluster that has one mostly has its queues and quotas for them; of
these Trainer, the one that goes on. Source: Kubeflow, "Migrating from Training Operator v1"."""

_LAST_CONDITIONS = ("Complete", "Succeeded", "Failed")
_FAILING = ("Failed", "FailureTarget")
"""The second: it will have failed once its pods have ended. Source: Kubernetes, "Jobs", terminal
conditions."""


def serves(api: Api, resource: Resource) -> bool:
    """Does the cluster know this kind, in this version? Raises ApiError."""
    try:
        found = api.read(f"/apis/{resource.group}/{resource.version}")
    except ApiError as error:
        if is_missing(error):
            return False
        raise
    return any(each.get("name") == resource.plural for each in mappings(found.get("resources")))


def served_as(api: Api, resource: Resource) -> Resource | None:
    """This kind in the version that the cluster has, of which no more is asked than whether it is
    there. None: it has it in none. Raises ApiError."""
    if not resource.group or serves(api, resource):
        return resource
    others = (replace(resource, version=version) for version in _versions(api, resource) or ())
    return next((each for each in others if serves(api, each)), None)


def _versions(api: Api, resource: Resource) -> list[str] | None:
    """Of its group. None: the cluster has not the group. Raises ApiError."""
    try:
        group = api.read(f"/apis/{resource.group}")
    except ApiError as error:
        if not is_missing(error):
            raise
        return None
    return [str(each.get("version")) for each in mappings(group.get("versions"))]


def lack_of(api: Api, resource: Resource) -> str:
    """Is its operator missing, or another version than we speak to? Raises ApiError."""
    versions = _versions(api, resource)
    if versions is None:
        return f"this cluster has no {resource.words(None)}"
    served = ", ".join(versions)
    return (
        f"this cluster has no {resource.words(None)} of version {resource.version}: "
        f"{resource.group} is there in {served or 'no version'}"
    )


def choose_kind(api: Api, asked: JobKind | Literal["auto"]) -> JobKind:
    """The one that is asked for, or the first that the cluster has.

    Raises ApiError; PlatformError where it has not the one that is asked for.
    """
    for kind, resource in RESOURCES.items():
        if asked not in (AUTO, kind):
            continue
        if serves(api, resource):
            return kind
        if asked != AUTO:
            raise PlatformError(
                f"kubernetes.job: {lack_of(api, resource)}",
                hint="install or update its operator, or `--set kubernetes.job=job`: it needs none",
            )
    raise AssertionError("every cluster has Jobs")


def choice_words(kind: JobKind, asked: JobKind | Literal["auto"]) -> str:
    """What is said of it before the job is made: `as a TrainJob, …`."""
    resource = RESOURCES[kind]
    if asked != AUTO:
        return f"as a {resource.kind}"
    others = ", ".join(each for each in RESOURCES if each != kind)
    why = "which every cluster has" if kind == "job" else f"since it has {resource.words(None)}"
    return f"as a {resource.kind}, {why}; `--set kubernetes.job=…` takes another ({others})"


def trouble_of(job: dict[str, Any]) -> str | None:
    """What its operator says is wrong with it; None: nothing."""
    for condition in mappings(mapping(job.get("status")).get("conditions")):
        if condition.get("type") in _FAILING and condition.get("status") == "True":
            return f"{condition.get('reason')}: {condition.get('message')}"
    return None


def has_ended(job: dict[str, Any]) -> bool:
    """Will its operator make no pods of it any more, as its status says?

    Source: Kubernetes, "Jobs", terminal conditions `Complete` and `Failed`; trainer 2.1,
    trainjob_types.go, the same; training-operator 1.9, common_types.go, `Succeeded` and `Failed`.
    """
    return any(
        condition.get("type") in _LAST_CONDITIONS and condition.get("status") == "True"
        for condition in mappings(mapping(job.get("status")).get("conditions"))
    )
