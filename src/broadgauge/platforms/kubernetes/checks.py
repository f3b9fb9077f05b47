"""What will the cluster refuse of a run? Asked before anything is created, and all said at once.

Only with the rights of whoever runs it: what may not be read is said as not checked, and refuses
nothing. Requests: one for the namespace, for each right, for each object that the experiment names
and for each that it makes.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from broadgauge.manifests.notes import is_of_runtime
from broadgauge.manifests.pod_template import bare_pod
from broadgauge.manifests.rbac import rules
from broadgauge.manifests.request import JobRequest
from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.api_errors import ApiError, malformed
from broadgauge.platforms.kubernetes.job_states import lack_of, served_as
from broadgauge.platforms.kubernetes.json_shapes import JsonMap, mapping
from broadgauge.platforms.kubernetes.named_objects import named_objects
from broadgauge.platforms.kubernetes.refusals import RBAC_HINT, refusal
from broadgauge.platforms.kubernetes.resources import (
    CLAIMS,
    NAMESPACES,
    PODS,
    REVIEWS,
    TRAIN_JOBS,
    Resource,
    resource_of,
)
from broadgauge.specs.errors import PlatformError, Problem

Say = Callable[[str], None]
T = TypeVar("T")
PATIENCE_S = 10.0
"""For a server, or an operator's webhook, that is coming up."""


def check_before(
    api: Api, request: JobRequest, namespace: str, objects: Sequence[JsonMap], say: Say
) -> None:
    """`objects`: all that the run makes. Raises PlatformError, which lists all that is wrong."""
    checks = _Checks(api=api, request=request, namespace=namespace, say=say)
    try:
        checks.all_of(objects)
    except ApiError as error:
        raise refusal(error, "asking the cluster what it would refuse") from error
    if checks.unknown:
        say(f"not checked, since you may not read it: {', '.join(checks.unknown)}")
    _refuse(checks.problems)


def _refuse(problems: list[Problem]) -> None:
    """Raises PlatformError."""
    if len(problems) == 1:
        raise PlatformError(f"{problems[0].where}: {problems[0].message}", hint=problems[0].hint)
    if problems:
        listed = "\n".join(str(problem) for problem in problems)
        raise PlatformError(f"the cluster would refuse this run; nothing was created\n{listed}")


@dataclass(slots=True, kw_only=True)
class _Checks:
    api: Api
    request: JobRequest
    namespace: str
    say: Say
    problems: list[Problem] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    _served: dict[Resource, Resource | None] = field(default_factory=dict)

    def all_of(self, objects: Sequence[JsonMap]) -> None:
        """Raises ApiError where nobody can be asked."""
        if not self._namespace():
            return
        missing = self._rights()
        self._named()
        self._rehearsal(objects, missing)
        self._pod()

    def _namespace(self) -> bool:
        """False: without it there is nothing more to say."""
        place, name = "kubernetes.namespace", self.namespace
        try:
            found = self._patiently(lambda: self.api.find(NAMESPACES, None, name))
        except ApiError as error:
            if error.status != 403:
                raise
            self.unknown.append(f"namespace {name}")
            return True
        if found is None:
            hint = f"`kubectl create namespace {name}`, or another `namespace`"
            self.problems.append(Problem(place, f"there is no namespace {name}", hint))
        elif "deletionTimestamp" in found["metadata"]:
            self.problems.append(Problem(place, f"namespace {name} is being deleted"))
        return not self.problems

    def _rights(self) -> set[tuple[str, str, str]]:
        """(verb, group, resource) of those that are missing."""
        missing = {
            (verb, group, kind)
            for rule in rules(self.request)
            for group in rule["apiGroups"]
            for kind in rule["resources"]
            for verb in rule["verbs"]
            if not self._may(verb, group, kind)
        }
        verbs_of = defaultdict(set)
        for verb, group, kind in missing:
            verbs_of[f"{kind}.{group}" if group else kind].add(verb)
        kinds_of = defaultdict(list)
        for what in sorted(verbs_of):
            kinds_of[", ".join(sorted(verbs_of[what]))].append(what)
        for verbs, kinds in kinds_of.items():
            message = f"you may not {verbs} {', '.join(kinds)} in namespace {self.namespace}"
            self.problems.append(Problem("your rights", message, RBAC_HINT))
        return missing

    def _may(self, verb: str, group: str, kind: str) -> bool:
        plural, _, part = kind.partition("/")
        asked = {"namespace": self.namespace, "verb": verb, "group": group, "resource": plural}
        body = {
            "apiVersion": REVIEWS.api_version,
            "kind": REVIEWS.kind,
            "spec": {"resourceAttributes": asked | ({"subresource": part} if part else {})},
        }

        def ask() -> bool:
            found = mapping(self.api.create(REVIEWS, None, body).get("status")).get("allowed")
            if not isinstance(found, bool):
                what = REVIEWS.words(None)
                raise malformed("a review that does not say what is allowed", "create", what)
            return found

        return self._patiently(ask)

    def _named(self) -> None:
        """What the experiment names and others have made."""
        for each in named_objects(self.request, self.namespace):
            resource = self._served_as(each.resource)
            if resource is None:
                message = f"`{each.name}`: {lack_of(self.api, each.resource)}"
                self.problems.append(Problem(each.place, message, "is its operator installed?"))
                continue
            try:
                is_there = self._patiently(
                    lambda: self.api.has(resource, each.namespace, each.name)  # noqa: B023  asked at once
                )
            except ApiError as error:
                if error.status != 403:
                    raise
                self.unknown.append(each.words)
                continue
            if not is_there:
                self.problems.append(Problem(each.place, f"there is no {each.words}", each.hint))

    def _rehearsal(self, objects: Sequence[JsonMap], missing: set[tuple[str, str, str]]) -> None:
        """What schemas, quotas and webhooks say of each object, without storing one."""
        names = {(body["kind"], body["metadata"]["name"]) for body in objects}
        for body in objects:
            resource = resource_of(body)
            if ("create", resource.group, resource.plural) in missing:
                continue
            place = f"{body['kind']} {body['metadata']['name']}"
            if not self._serves(resource):
                hint = "install or update its operator"
                self.problems.append(Problem(place, lack_of(self.api, resource), hint))
                continue
            try:
                self._patiently(lambda: self.api.rehearse(resource, self.namespace, body))  # noqa: B023  asked at once
            except ApiError as error:
                if error.status in (None, 401):
                    raise
                if not self._is_known(error, resource, body, names):
                    told = refusal(error, "creating it")
                    self.problems.append(Problem(place, told.message, told.hint))

    def _pod(self) -> None:
        """What quotas, limits, Pod Security and webhooks say of a pod: a job that is rehearsed
        makes none. A run needs no right to create pods, so that this is done where it is there.

        The claims, ConfigMaps and Secrets that it mounts need not be there for a rehearsal.
        """
        if is_of_runtime(self.request):
            return  # its pods are as somebody else's runtime says
        if not self._may("create", "", "pods"):
            self.say("its pods are not checked: you may not create pods, which a run does not need")
            return
        body = bare_pod(self.request)
        try:
            self._patiently(lambda: self.api.rehearse(PODS, self.namespace, body))
        except ApiError as error:
            if error.status in (None, 401):
                raise
            told = refusal(error, "creating one")
            self.problems.append(Problem("its pods", told.message, told.hint))

    def _is_known(
        self, error: ApiError, resource: Resource, body: JsonMap, names: set[tuple[str, str]]
    ) -> bool:
        """Is it no refusal of what `create_all` does?"""
        if error.reason == "AlreadyExists":
            return resource is CLAIMS
        # A rehearsed runtime is not stored, so that the job's webhook does not find it.
        of_us = ("TrainingRuntime", body["metadata"]["name"])
        return resource is TRAIN_JOBS and of_us in names and "untime" in error.message

    def _serves(self, resource: Resource) -> bool:
        """Does the cluster know this kind, in this version?"""
        return self._served_as(resource) == resource

    def _served_as(self, resource: Resource) -> Resource | None:
        """In which version? Each is asked for once."""
        if resource not in self._served:
            self._served[resource] = self._patiently(lambda: served_as(self.api, resource))
        return self._served[resource]

    def _patiently(self, ask: Callable[[], T]) -> T:
        return self.api.patiently(ask, PATIENCE_S, self.say)
