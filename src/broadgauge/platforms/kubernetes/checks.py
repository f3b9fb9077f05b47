"""What will the cluster refuse of a run? Asked before anything is made, and all said at once.

With the rights of whoever runs it alone: what may not be read is said as not checked, and refuses
nothing. Requests: one for the namespace, for each right, for each object that the experiment names
and for each that it makes. A rehearsal ("dry run") goes through admission, and is stored nowhere.
Source: Kubernetes API concepts, "Dry-run"; quotas, LimitRanges, Pod Security and webhooks judge
pods, which a job that is rehearsed does not have: so a pod is rehearsed, too.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from broadgauge.manifests.rights import Right, needed_rights, rights_to_run
from broadgauge.manifests.run_job import RunJob, bare_pod
from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.api_errors import ApiError, malformed
from broadgauge.platforms.kubernetes.job_states import lack_of, served_as
from broadgauge.platforms.kubernetes.json_shapes import JsonMap, mapping
from broadgauge.platforms.kubernetes.making import RunObjects
from broadgauge.platforms.kubernetes.map_nodes import missing_nodes
from broadgauge.platforms.kubernetes.named_objects import REFERRED, named_objects, references_in
from broadgauge.platforms.kubernetes.refusals import RBAC_HINT, refusal
from broadgauge.platforms.kubernetes.resources import (
    NAMESPACES,
    NODES,
    PODS,
    REVIEWS,
    TRAIN_JOBS,
    Resource,
    resource_of,
)
from broadgauge.specs.errors import PlatformError, Problem

Say = Callable[[str], None]
T = TypeVar("T")
ACCOUNT = "kubernetes.service_account"
"""Where it is missing."""
PATIENCE_S = 10.0
"""For a server, or an operator's webhook, that is coming up."""


def check_before(api: Api, objects: RunObjects, namespace: str, say: Say) -> None:
    """Raises PlatformError, which lists all that is wrong."""
    checks = _Checks(api=api, run=objects.run, namespace=namespace, say=say)
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
        listed = "\n".join(map(str, problems))
        raise PlatformError(f"the cluster would refuse this run; nothing was made\n{listed}")


@dataclass(slots=True, kw_only=True)
class _Checks:
    api: Api
    run: RunJob
    namespace: str
    say: Say
    problems: list[Problem] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    _served: dict[Resource, Resource | None] = field(default_factory=dict)
    _of_quotas: dict[str, Problem] = field(default_factory=dict)
    """By what a quota says after its `exceeded quota:`."""

    def all_of(self, objects: RunObjects) -> None:
        """Raises ApiError where nobody can be asked."""
        if not self._has_namespace():
            return  # without it there is nothing more to say
        lasting = [each for each in objects.lasting if not self._is_there(each)]
        missing = self._missing_rights(objects.own, lasting)
        self._look_for_named((*lasting, *objects.own))
        self._look_for_mapped_nodes()
        has_account = all(each.where != ACCOUNT for each in self.problems)
        self._rehearse_all((*lasting, objects.secret, *objects.own), missing)
        if has_account:  # else a pod is refused for that alone
            self._rehearse_pod()

    def _has_namespace(self) -> bool:
        place, name = "kubernetes.namespace", self.namespace
        unread: JsonMap | None = {}
        found = self._read(
            lambda: self.api.find(NAMESPACES, None, name), unread, f"namespace {name}"
        )
        if found is None:
            hint = f"`kubectl create namespace {name}`, or another `namespace`"
            self._add(place, f"there is no namespace {name}", hint)
        elif "deletionTimestamp" in mapping(found.get("metadata")):
            self._add(place, f"namespace {name} is being deleted")
        return not self.problems

    def _is_there(self, body: JsonMap) -> bool:
        """As far as can be known; what is there is made by nobody. Raises ApiError."""
        resource = self._served_as(resource_of(body))
        if resource is None:
            return False
        name = body["metadata"]["name"]
        return self._read(lambda: self.api.has(resource, self.namespace, name), unread=False)

    def _missing_rights(self, own: Sequence[JsonMap], lasting: Sequence[JsonMap]) -> set[Right]:
        """Without some no run can be; what the others would show stays unknown."""
        missing = {
            (verb, group, kind)
            for rule in rights_to_run(self.run, (*lasting, *own))
            for group in rule["apiGroups"]
            for kind in rule["resources"]
            for verb in rule["verbs"]
            if not self._may(verb, group, kind)
        }
        needed = needed_rights(own, lasting)
        for text in self._in_words(missing & needed):
            self._add("your rights", f"you may not {text}", RBAC_HINT)
        for text in self._in_words(missing - needed):
            self.say(f"you may not {text}: the run does without, and may know less")
        return missing

    def _in_words(self, rights: set[Right]) -> list[str]:
        """Kinds of the same verbs together: `get, list pods, events in namespace training`."""
        verbs_of = defaultdict(set)
        for verb, group, kind in rights:
            verbs_of[f"{kind}.{group}" if group else kind].add(verb)
        kinds_of = defaultdict(list)
        for what in sorted(verbs_of):
            kinds_of[", ".join(sorted(verbs_of[what]))].append(what)
        return [
            f"{verbs} {', '.join(kinds)} in namespace {self.namespace}"
            for verbs, kinds in kinds_of.items()
        ]

    def _may(self, verb: str, group: str, kind: str) -> bool:
        """Raises ApiError."""
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

    def _look_for_named(self, bodies: Sequence[JsonMap]) -> None:
        """What the experiment names and others have made, if these objects ask for it: not each
        case has every volume and secret. Raises ApiError."""
        interfaces = self.run.attachments.interfaces
        asked_for = set(references_in(bodies))
        for each in named_objects(self.run.settings, interfaces, self.namespace):
            if each.resource in REFERRED and (each.resource, each.name) not in asked_for:
                continue
            resource = self._served_as(each.resource)
            if resource is None:
                lack = f"`{each.name}`: {lack_of(self.api, each.resource)}"
                self._add(each.place, lack, "is its operator installed?")
                continue
            is_there = self._read(
                lambda: self.api.has(resource, each.namespace, each.name),  # noqa: B023  asked at once
                unread=True,
                words=each.words,
            )
            if not is_there:
                self._add(each.place, f"there is no {each.words}", each.hint)

    def _look_for_mapped_nodes(self) -> None:
        """Those that the address map names; where nodes may not be listed nothing is said. Fewer
        than the map has are no obstacle while they are enough. Raises ApiError."""
        if not any(each.is_mapped for each in self.run.attachments.interfaces):
            return
        unread: JsonMap | None = None
        found = self._read(lambda: self.api.list_metadata(NODES, None), unread)
        if found is None:
            return
        there = {item["metadata"]["name"] for item in found["items"]}
        missing = missing_nodes(self.run, there)
        if missing is None:
            return
        if not missing.is_enough_left:
            self.problems += missing.problems
            return
        for problem in missing.problems:
            self.say(str(problem))

    def _rehearse_all(self, objects: Sequence[JsonMap], missing: set[Right]) -> None:
        """What schemas, quotas and webhooks say of each object. Raises ApiError."""
        names = {(body["kind"], body["metadata"]["name"]) for body in objects}
        for body in objects:
            resource = resource_of(body)
            if ("create", resource.group, resource.plural) in missing:
                continue  # said already
            place = f"{body['kind']} {body['metadata']['name']}"
            if self._served_as(resource) != resource:
                lack = lack_of(self.api, resource)
                self._add(place, lack, "install or update its operator")
                continue
            try:
                self._patiently(lambda: self.api.rehearse(resource, self.namespace, body))  # noqa: B023  asked at once
            except ApiError as error:
                if error.status in (None, 401):
                    raise
                if not _is_no_refusal(error, resource, body, names):
                    self._add_refusal(place, "making it", error)

    def _rehearse_pod(self) -> None:
        """A run needs no right to create pods: this is done where it is there. Raises ApiError.

        The claims, ConfigMaps and Secrets that it mounts need not be there for a rehearsal.
        """
        if not self._may("create", "", "pods"):
            self.say(
                "what quotas, LimitRanges and policies say of the pods is seen with the job alone: "
                "you may not create pods, which a run does not need"
            )
            return
        try:
            self._patiently(lambda: self.api.rehearse(PODS, self.namespace, bare_pod(self.run)))
        except ApiError as error:
            if error.status in (None, 401):
                raise
            self._add_refusal("its pods", "making one", error)

    def _add(self, place: str, message: str, hint: str | None = None) -> None:
        self.problems.append(Problem(place, message, hint))

    def _add_refusal(self, place: str, doing: str, error: ApiError) -> None:
        """What one quota says of several objects is one problem, with all their places."""
        _, _, quota = error.message.partition("exceeded quota: ")
        if quota in self._of_quotas:
            self._of_quotas[quota].where += f", {place}"
            return
        told = refusal(error, doing)
        self._add(place, told.message, told.hint)
        if quota:
            self._of_quotas[quota] = self.problems[-1]

    def _read(self, ask: Callable[[], T], unread: T, words: str | None = None) -> T:
        """`unread`: instead of what may not be read, which refuses nothing. `words`: that this is
        not known. Raises ApiError."""
        try:
            return self._patiently(ask)
        except ApiError as error:
            if error.status != 403:
                raise
            if words is not None:
                self.unknown.append(words)
            return unread

    def _served_as(self, resource: Resource) -> Resource | None:
        """In the version that the cluster has; None: it does not know this kind. Each is asked for
        once. Raises ApiError."""
        if resource not in self._served:
            self._served[resource] = self._patiently(lambda: served_as(self.api, resource))
        return self._served[resource]

    def _patiently(self, ask: Callable[[], T]) -> T:
        """Raises ApiError."""
        return self.api.patiently(ask, PATIENCE_S, self.say)


def _is_no_refusal(
    error: ApiError, resource: Resource, body: JsonMap, names: set[tuple[str, str]]
) -> bool:
    """Of what is there already whoever makes it says more: it may be meant to stay. A rehearsed
    runtime is not stored, so that the webhook of its TrainJob does not find it."""
    of_us = ("TrainingRuntime", body["metadata"]["name"])
    is_of_runtime = resource is TRAIN_JOBS and of_us in names and "untime" in error.message
    return error.reason == "AlreadyExists" or is_of_runtime
