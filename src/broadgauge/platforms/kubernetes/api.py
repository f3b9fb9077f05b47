"""How is an API server spoken to? One request at a time, plain JSON, errors as one type."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import httpx2

from broadgauge.messages.waiting_limits import waiting_limit_s
from broadgauge.platforms.kubernetes.api_errors import (
    ApiError,
    check_answer,
    check_list,
    check_object,
    decoded,
    event_of,
    is_missing,
    told,
)
from broadgauge.platforms.kubernetes.api_rights import Rights
from broadgauge.platforms.kubernetes.json_shapes import JsonMap
from broadgauge.platforms.kubernetes.kubeconfig import read_config
from broadgauge.platforms.kubernetes.login import open_client
from broadgauge.platforms.kubernetes.resources import PODS, Resource

T = TypeVar("T")
FIELD_MANAGER = "broadgauge"
CONNECT_LIMIT_S = waiting_limit_s(10.0)
ANSWER_LIMIT_S = waiting_limit_s(60.0)
AGAIN_AFTER_S = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
LONGEST_PAUSE_S = 60.0
"""Whatever a server asks for with `Retry-After`: a run is not deaf for longer."""
_APPLY = "application/apply-patch+yaml"
_MERGE = "application/merge-patch+json"
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


@dataclass(frozen=True, slots=True)
class Api:
    """One API server, with the user's rights."""

    client: httpx2.Client
    server: str
    context: str | None
    default_namespace: str
    _rights: Rights = field(default_factory=Rights, repr=False, compare=False)

    @classmethod
    def connect(cls, context: str | None) -> "Api":
        """Raises InputError where there is no usable kubeconfig. No server is asked."""
        found = read_config(context)
        timeout = httpx2.Timeout(ANSWER_LIMIT_S, connect=CONNECT_LIMIT_S)
        client = open_client(found, timeout)
        return cls(client, found.server, found.name, found.namespace)

    def get(self, resource: Resource, namespace: str | None, name: str) -> JsonMap:
        """Raises ApiError."""
        found = self._ask("get", resource, namespace, name)
        return check_object(found, "get", f"{resource.words(namespace)} ({name})")

    def find(self, resource: Resource, namespace: str | None, name: str) -> JsonMap | None:
        """None: there is none. Raises ApiError."""
        try:
            return self.get(resource, namespace, name)
        except ApiError as error:
            if is_missing(error):
                return None
            raise

    def has(self, resource: Resource, namespace: str | None, name: str) -> bool:
        """Is it there? Its metadata alone are asked for: no Secret's value. Raises ApiError."""
        path, words = f"{resource.path(namespace)}/{name}", resource.words(namespace)
        try:
            self._send("get", path, f"{words} ({name})", of=words, accept=_METADATA)
        except ApiError as error:
            if is_missing(error):
                return False
            raise
        return True

    def find_metadata(self, resource: Resource, namespace: str, name: str) -> JsonMap | None:
        """As `find`, its metadata alone: no Secret's value. Raises ApiError."""
        path, words = f"{resource.path(namespace)}/{name}", resource.words(namespace)
        what = f"{words} ({name})"
        try:
            found = self._send("get", path, what, of=words, accept=_METADATA)
        except ApiError as error:
            if is_missing(error):
                return None
            raise
        return check_object(found, "get", what)

    def list(
        self, resource: Resource, namespace: str | None, selector: str = "", *, fields: str = ""
    ) -> JsonMap:
        """The whole list, each of its items with a name. Raises ApiError."""
        params = {"labelSelector": selector} if selector else {}
        params |= {"fieldSelector": fields} if fields else {}
        found = self._ask("list", resource, namespace, params=params)
        return check_list(found, "list", resource.words(namespace))

    def list_metadata(
        self, resource: Resource, namespace: str | None, selector: str = ""
    ) -> JsonMap:
        """As `list`, of each item its metadata alone: no Secret's value. Raises ApiError."""
        what = resource.words(namespace)
        params = {"labelSelector": selector}
        found = self._send(
            "list", resource.path(namespace), what, of=what, params=params, accept=_LIST
        )
        if found.get("kind") == "PartialObjectMetadataList" and found.get("items") is None:
            found["items"] = []  # how a server says none, of custom resources
        return check_list(found, "list", what)

    def create(self, resource: Resource, namespace: str | None, body: JsonMap) -> JsonMap:
        """Raises ApiError."""
        params = {"fieldManager": FIELD_MANAGER}
        return self._ask("create", resource, namespace, body=body, params=params)

    def rehearse(self, resource: Resource, namespace: str | None, body: JsonMap) -> JsonMap:
        """All that `create` does but to store it; unknown fields are refused. Raises ApiError."""
        params = {"fieldManager": FIELD_MANAGER, "dryRun": "All", "fieldValidation": "Strict"}
        return self._ask("create", resource, namespace, body=body, params=params)

    def apply(self, resource: Resource, namespace: str | None, body: JsonMap) -> JsonMap:
        """Create it, or make it so. Raises ApiError."""
        name = str(body["metadata"]["name"])
        params = {"fieldManager": FIELD_MANAGER, "force": "true"}
        return self._ask("patch", resource, namespace, name, body=body, params=params, form=_APPLY)

    def merge(self, resource: Resource, namespace: str, name: str, body: JsonMap) -> JsonMap:
        """Change what stands in `body`. Raises ApiError."""
        params = {"fieldManager": FIELD_MANAGER}
        return self._ask("patch", resource, namespace, name, body=body, params=params, form=_MERGE)

    def delete(
        self, resource: Resource, namespace: str, name: str, uid: str, *, own_first: bool = True
    ) -> bool:
        """And what it owns: before it, or after. False: it was gone. Raises ApiError: 409 where
        another has its name."""
        policy = "Foreground" if own_first else "Background"
        body = {"propagationPolicy": policy, "preconditions": {"uid": uid}}
        try:
            self._ask("delete", resource, namespace, name, body=body)
        except ApiError as error:
            if is_missing(error):
                return False
            raise
        return True

    def read(self, path: str) -> JsonMap:
        """Any path of the server's, as `/apis` or `/version`. Raises ApiError."""
        what = f"{path} of the cluster"
        return self._send("get", path, what, of=what)

    def watch(
        self,
        resource: Resource,
        namespace: str,
        selector: str,
        version: str,
        limit_s: float,
        *,
        opened: Callable[[], None] = lambda: None,
    ) -> Iterator[tuple[str, JsonMap]]:
        """What changes from this version on, until the server ends it. Raises ApiError.

        `opened`: called once the server has said yes.
        """
        params = {
            **({"labelSelector": selector} if selector else {}),
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(int(limit_s)),
        }
        what, path = resource.words(namespace), resource.path(namespace)
        with self._stream("watch", path, what, params, limit_s, of=what) as answer:
            opened()
            for line in answer.iter_lines():
                if line:
                    yield event_of(line, what)

    def log(
        self, namespace: str, pod: str, params: Mapping[str, str], limit_s: float
    ) -> Iterator[bytes]:
        """A pod's log as it comes; nothing for `limit_s` is an error. Raises ApiError."""
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/log"
        what = f"pods/log of {pod} in namespace {namespace}"
        of = PODS.words(namespace)
        with self._stream("get", path, what, dict(params), limit_s, of=of) as answer:
            yield from answer.iter_bytes()

    def patiently(self, ask: Callable[[], T], limit_s: float, say: Callable[[str], None]) -> T:
        """Again and again where a server is busy or away, for so long. Raises ApiError."""
        deadline_s = time.monotonic() + limit_s
        for attempt in range(10_000):
            try:
                return ask()
            except ApiError as error:
                if not error.is_passing or time.monotonic() > deadline_s:
                    raise
                say(f"the API server does not answer as it should: {error}; trying again")
                asked_s = min(error.retry_after_s, limit_s)
            time.sleep(max(asked_s, AGAIN_AFTER_S[min(attempt, len(AGAIN_AFTER_S) - 1)]))
        raise AssertionError("the limit comes first")

    def _ask(
        self,
        verb: str,
        resource: Resource,
        namespace: str | None,
        name: str | None = None,
        *,
        body: JsonMap | None = None,
        params: Mapping[str, str] | None = None,
        form: str | None = None,
    ) -> JsonMap:
        path = resource.path(namespace) + ("" if name is None else f"/{name}")
        words = resource.words(namespace)
        what = words + ("" if name is None else f" ({name})")
        return self._send(verb, path, what, of=words, body=body, params=params, form=form)

    def _send(
        self,
        verb: str,
        path: str,
        what: str,
        *,
        of: str,
        body: JsonMap | None = None,
        params: Mapping[str, str] | None = None,
        form: str | None = None,
        accept: str = "application/json",
    ) -> JsonMap:
        """`of`: by which rights are kept in mind."""
        headers = {"Accept": accept}
        if body is not None:
            headers["Content-Type"] = form or "application/json"
        content = None if body is None else json.dumps(body).encode()
        with told(verb, what, self.server):
            answer = self.client.request(
                _METHODS[verb], path, params=dict(params or {}), content=content, headers=headers
            )
        with self._rights.used(of):
            check_answer(answer, verb, what)
        return decoded(answer.content, verb, what)

    @contextmanager
    def _stream(
        self, verb: str, path: str, what: str, params: Mapping[str, str], limit_s: float, *, of: str
    ) -> Iterator[httpx2.Response]:
        timeout = httpx2.Timeout(limit_s + ANSWER_LIMIT_S, connect=CONNECT_LIMIT_S)
        with (
            told(verb, what, self.server),
            self.client.stream("GET", path, params=dict(params), timeout=timeout) as answer,
        ):
            if answer.status_code >= 300:
                answer.read()
            with self._rights.used(of):
                check_answer(answer, verb, what)
            yield answer


_METHODS = {
    "get": "GET",
    "list": "GET",
    "watch": "GET",
    "create": "POST",
    "patch": "PATCH",
    "delete": "DELETE",
}
