"""Is a pod one of our job's? Its controller says it: labels alone may be anyone's.

Of a TrainJob the pods' controller is a Job that the operators make: its name is known,
its uid is not, since a run has no right to read Jobs there. Who may create pods may claim any
controller, and read the namespace's Secrets: that such people do not is what a run relies on.
Source: Kubernetes, "Owners and Dependents"; training-operator 1.9, pkg/controller.v1/common; JobSet
0.12, pkg/controllers, `<jobset>-<replicated job>-<index>`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from broadgauge.manifests.names import JOB, REPLICATED_JOB
from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.api_errors import ApiError
from broadgauge.platforms.kubernetes.job_place import JobPlace
from broadgauge.platforms.kubernetes.job_states import RESOURCES
from broadgauge.platforms.kubernetes.json_shapes import JsonMap, labels_in, mapping, text
from broadgauge.platforms.kubernetes.pod_states import Controller, PodState
from broadgauge.platforms.kubernetes.pod_warnings import about, about_name
from broadgauge.platforms.kubernetes.refusals import refusal
from broadgauge.platforms.kubernetes.resources import JOBS, PYTORCH_JOBS, Resource
from broadgauge.specs.kubernetes.settings import JobKind


@dataclass(frozen=True, slots=True)
class _Expected:
    """Of the pods of one kind of job."""

    resource: Resource
    suffix: str = ""
    """After the job's name, in the controller's."""

    @property
    def is_the_job(self) -> bool:
        """Is it the object that we created, whose uid is known?"""
        return not self.suffix


_BELOW = _Expected(JOBS, f"-{REPLICATED_JOB}-0")
_EXPECTED: dict[JobKind, _Expected] = {
    "pytorchjob": _Expected(PYTORCH_JOBS),
    "trainjob": _BELOW,
    "job": _Expected(JOBS),
}


def is_pod_of(place: JobPlace, pod: PodState) -> bool:
    """By its controller, and by the job's uid where that is known and is the controller's."""
    expected = _EXPECTED[place.kind]
    if not _is_controlled(pod.controller, expected, place.name):
        return False
    return not expected.is_the_job or place.uid in (None, _uid(pod.controller))


def events_of_makers(place: JobPlace) -> tuple[str, ...]:
    """Field selectors: of the job, and of the Job that an operator makes of it."""
    expected, job = _EXPECTED[place.kind], RESOURCES[place.kind]
    of_job = about_name(job.kind, place.name) if place.uid is None else about(place.uid)
    if expected.is_the_job:
        return (of_job,)
    return of_job, about_name(expected.resource.kind, place.name + expected.suffix)


def is_made_by(job: JsonMap, pod: PodState) -> bool:
    """Is this very object its controller?"""
    uid = _uid_of(job)
    return uid is not None and _uid(pod.controller) == uid


def is_left_pod(pod: JsonMap, controller: Controller | None) -> bool:
    """Of a job that may be gone, of any kind: has it a controller as our job of its label has?"""
    name = labels_in(pod).get(JOB, "")
    return any(_is_controlled(controller, each, name) for each in _EXPECTED.values())


def _is_controlled(controller: Controller | None, expected: _Expected, name: str) -> bool:
    return controller is not None and (
        controller.group == expected.resource.group
        and controller.kind == expected.resource.kind
        and controller.name == name + expected.suffix
    )


def _uid(controller: Controller | None) -> str | None:
    return None if controller is None else controller.uid


def created(place: JobPlace, objects: Iterable[JsonMap], num_pods: int) -> JobPlace:
    """With what is known of the job once these objects are there."""
    kind = RESOURCES[place.kind].kind
    found = (_uid_of(each) for each in objects if _is_named(each, kind, place.name))
    return replace(place, uid=next(found, None), num_pods=num_pods)


def _is_named(item: JsonMap, kind: str, name: str) -> bool:
    return item.get("kind") == kind and mapping(item.get("metadata")).get("name") == name


def found_again(api: Api, place: JobPlace) -> JobPlace:
    """Of a tool that was killed before it wrote down which job it had created.

    Raises PlatformError.
    """
    if place.uid is not None:
        return place
    try:
        job = api.find(RESOURCES[place.kind], place.namespace, place.name)
    except ApiError as error:
        raise refusal(error, f"looking at {place.kind} {place.name}") from error
    return place if job is None else replace(place, uid=_uid_of(job))


def _uid_of(item: JsonMap) -> str | None:
    return text(mapping(item.get("metadata")).get("uid"))
