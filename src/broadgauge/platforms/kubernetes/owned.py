"""What does a run have in a cluster, and how is it made and removed? By its labels, and no other's.

An object of ours bears both labels; one that bears the run's alone is somebody else's. We make no
pods ourselves: one is ours where a job of ours is its controller, too. A Secret is looked for by
its job's name, so that nobody needs the right to list them: it is made after, and deleted before,
other objects that bear the job's label.
"""

import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from broadgauge.manifests.names import JOB, MANAGER, OWNER, RUN, secrets_name_for
from broadgauge.messages.waiting_limits import waiting_limit_s
from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.api_errors import MALFORMED, ApiError, is_missing, malformed
from broadgauge.platforms.kubernetes.job_place import this_owner
from broadgauge.platforms.kubernetes.json_shapes import JsonMap, labels_in, mapping, text, texts
from broadgauge.platforms.kubernetes.ownership import is_left_pod
from broadgauge.platforms.kubernetes.pod_states import controller_of
from broadgauge.platforms.kubernetes.refusals import refusal
from broadgauge.platforms.kubernetes.resources import (
    CLAIMS,
    CONFIG_MAPS,
    JOB_KINDS,
    LISTED,
    PODS,
    SECRETS,
    TRAIN_JOBS,
    Resource,
    resource_of,
)
from broadgauge.specs.kubernetes.settings import MANAGED_BY, OUR_DOMAIN

CREATION = f"{OUR_DOMAIN}/creation"
"""Annotation, of another value each time that objects are made: an answer may be lost, and what is
there then is ours by this alone. An older job of the same name has older orders."""
Say = Callable[[str], None]
CREATE_LIMIT_S = waiting_limit_s(60.0)
"""For a server that is busy or coming up."""
RUNTIME_LIMIT_S = waiting_limit_s(60.0)
"""For a webhook to hear of what it looks for: a watch tells it within a second, on a busy machine
later."""
DELETE_LIMIT_S = waiting_limit_s(120.0)
LOOK_EVERY_S = 0.5
OF_EACH_RUN = (PODS, CONFIG_MAPS, SECRETS)
"""Kinds of which each run makes some, beside its kind of job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owned:
    """What was found of ours."""

    objects: tuple[tuple[Resource, JsonMap], ...]
    """Those that own others first; of each its metadata alone."""
    unseen: Mapping[Resource, ApiError]
    """Kinds that could not be listed, and why. One that the cluster has not is none of them."""


def selector_of(run: str | None = None) -> str:
    """Of all that is ours; `run`: of one run."""
    ours = f"{MANAGED_BY}={MANAGER}"
    return f"{ours},{RUN}" if run is None else f"{ours},{RUN}={run}"


def create_all(
    api: Api, namespace: str, objects: Sequence[JsonMap], say: Say
) -> tuple[JsonMap, ...]:
    """In their order, as they are then. Raises PlatformError; what was made until then stays,
    under its labels."""
    made: list[JsonMap] = []
    creation = secrets.token_hex(8)
    for each in objects:
        resource = resource_of(each)
        body = each if resource is CLAIMS else _marked(each, creation)
        try:
            there = api.patiently(
                lambda: _create_once_seen(api, resource, namespace, body),  # noqa: B023  asked at once
                CREATE_LIMIT_S,
                say,
            )
            made.append(there)
        except ApiError as error:
            name = body["metadata"]["name"]
            raise refusal(error, f"creating {body['kind']} {name}") from error
    return tuple(made)


def _marked(body: JsonMap, creation: str) -> JsonMap:
    """With what tells it from an older one of its name and labels, and who runs it."""
    metadata = body["metadata"]
    annotations = mapping(metadata.get("annotations")) | {CREATION: creation, OWNER: this_owner()}
    return body | {"metadata": metadata | {"annotations": annotations}}


def _create_once_seen(api: Api, resource: Resource, namespace: str, body: JsonMap) -> JsonMap:
    """A TrainJob is refused until its webhook has heard of the runtime that was made just before.

    Raises ApiError. Source: trainer 2.1, pkg/webhooks: the runtime is read from a cache.
    """
    deadline_s = time.monotonic() + RUNTIME_LIMIT_S
    while True:
        try:
            return _create(api, resource, namespace, body)
        except ApiError as error:
            is_unseen = resource is TRAIN_JOBS and error.status == 403 and "untime" in error.message
            if not is_unseen or time.monotonic() > deadline_s:
                raise
        time.sleep(LOOK_EVERY_S)


def _create(api: Api, resource: Resource, namespace: str, body: JsonMap) -> JsonMap:
    """Also where an answer was lost, and it is there and stays. Raises ApiError."""
    try:
        return api.create(resource, namespace, body)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
        if resource is CLAIMS:  # it was filled before, and stays
            return api.get(resource, namespace, body["metadata"]["name"])
        there = api.get(resource, namespace, body["metadata"]["name"])
        if _creation(there) == _creation(body) and "deletionTimestamp" not in there["metadata"]:
            return there
        raise


def _creation(item: JsonMap) -> str | None:
    return texts(item["metadata"].get("annotations")).get(CREATION)


def find_all(api: Api, namespace: str, run: str | None, jobs: Iterable[str] = ()) -> Owned:
    """What is ours there. Raises ApiError where nobody answers, or knows who asks.

    Secrets have the names of jobs: of those that other objects are labelled with, and of `jobs`.
    """
    objects: list[tuple[Resource, JsonMap]] = []
    unseen: dict[Resource, ApiError] = {}
    for resource in LISTED:
        try:
            found = api.list_metadata(resource, namespace, selector_of(run))
        except ApiError as error:
            _keep_unseen(unseen, resource, error)
            continue
        objects += [(resource, item) for item in found["items"] if is_ours(resource, item, run)]
    for job in sorted({*jobs, *jobs_of(objects)}):
        try:
            secret = api.find_metadata(SECRETS, namespace, secrets_name_for(job))
        except ApiError as error:
            _keep_unseen(unseen, SECRETS, error)
            continue
        if secret is not None and is_ours(SECRETS, secret, run):
            objects.append((SECRETS, secret))
    return Owned(objects=tuple(objects), unseen=unseen)


def _keep_unseen(unseen: dict[Resource, ApiError], resource: Resource, error: ApiError) -> None:
    """Raises ApiError where nobody answers, or knows who asks."""
    if error.status == 401 or (error.status is None and error.reason != MALFORMED):
        raise error
    if not is_missing(error):
        unseen[resource] = error


def jobs_of(objects: Iterable[tuple[Resource, JsonMap]]) -> set[str]:
    """Names of the jobs that these belong to."""
    return {name for _, item in objects if (name := labels_in(item).get(JOB)) is not None}


def is_ours(resource: Resource, item: JsonMap, run: str | None) -> bool:
    """Does it bear both labels? A list is not trusted with it: what is deleted is gone."""
    labels = labels_in(item)
    is_of_run = RUN in labels if run is None else labels.get(RUN) == run
    if labels.get(MANAGED_BY) != MANAGER or not is_of_run:
        return False
    return resource is not PODS or is_left_pod(item, controller_of(item["metadata"]))


def delete_all(api: Api, namespace: str, run: str, say: Say, job: Resource | None = None) -> bool:
    """All of the run's; claims stay. False: it can't be told whether all is gone.

    `job`: the kind of job that the run has; None: nobody knows.
    """
    deadline_s = time.monotonic() + DELETE_LIMIT_S
    told, names = False, {run}
    while time.monotonic() < deadline_s:
        try:
            left = _left(api, namespace, run, job, names)
            if not left:
                return True
            names |= jobs_of(left)
            # A TrainJob's runtime stays as long as it is used, and a Secret is found by what else
            # its job has.
            jobs = [each for each in left if each[0] in JOB_KINDS]
            secrets_first = sorted(left, key=lambda each: each[0] is not SECRETS)
            for resource, item in jobs or secrets_first:
                if "deletionTimestamp" not in item["metadata"]:
                    _delete(api, resource, namespace, item)
        except ApiError as error:
            if not error.is_passing:
                say(str(refusal(error, f"deleting run {run}")))
                return False
            if not told:
                say(f"the API server does not answer as it should: {error}; trying again")
                told = True
        time.sleep(LOOK_EVERY_S)
    say(f"some of run {run} is not gone after {DELETE_LIMIT_S:g} s: `broadgauge cleanup`")
    return False


def _left(
    api: Api, namespace: str, run: str, job: Resource | None, names: Iterable[str]
) -> tuple[tuple[Resource, JsonMap], ...]:
    """Raises ApiError where nothing is seen, and not all could be looked at.

    What may not be listed has nothing of a run whose rights were asked for before it began: but
    for the kinds of which each run makes some.
    """
    found = find_all(api, namespace, run, names)
    for resource, error in found.unseen.items():
        if not found.objects and (error.status != 403 or resource in (*OF_EACH_RUN, job)):
            raise error
    return found.objects


def _delete(api: Api, resource: Resource, namespace: str, item: JsonMap) -> None:
    """This one, and none that has its name since. Raises ApiError."""
    name, uid = item["metadata"]["name"], text(item["metadata"].get("uid"))
    # One that waits for what it owns is still looked at, and its JobSet is made again and again.
    # Source: trainer 2.3, pkg/controller/trainjob_controller.go, which does not ask whether it is
    # being deleted.
    own_first = resource is not TRAIN_JOBS
    if uid is None:
        raise malformed(f"{name} without a uid", "list", resource.words(namespace))
    try:
        api.delete(resource, namespace, name, uid, own_first=own_first)
    except ApiError as error:
        # Pods go with their controller, also where a Role lets nobody delete them. Of another
        # one of this name the next look tells.
        if error.status != 409 and not (resource is PODS and error.status == 403):
            raise
