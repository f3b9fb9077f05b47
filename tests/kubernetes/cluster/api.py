"""Requests about objects of any kind, as one user of the API server makes them.

`Api.create(manifest, dry_run=True)` is a strict server-side dry run: the server's schemas, its
defaults and all webhooks judge the manifest, a field that no schema knows is refused, and nothing
is stored. They do not look into text, such as a script or JSON in a ConfigMap.

Whatever the server refuses is a `RefusedError` with its status, reason and message.
"""

import json
import re
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.timeouts import HANG_S

Manifest = dict[str, Any]
FIELD_MANAGER = "broadgauge-tests"
_WARNING = re.compile(r'^299 \S+ "(.*)"$')


class RefusedError(Exception):
    """The API server, or a webhook that it asked, said no.

    Its text is `<status> <reason>: <message>`; the message names the field by its path.
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        """Of HTTP: 400 of a misspelt field, 403 of a webhook or of missing rights, 404, 422."""
        self.reason = reason
        """Kubernetes' word: BadRequest, Forbidden, Invalid, NotFound, AlreadyExists …"""
        self.message = message


class Api:
    """What one user may ask of one API server."""

    def __init__(self, url: str, authority: Path, token: str) -> None:
        self._url, self._token = url, token
        self._tls = ssl.create_default_context(cafile=authority)
        no_proxy = urllib.request.ProxyHandler({})
        https = urllib.request.HTTPSHandler(context=self._tls)
        self._opener = urllib.request.build_opener(no_proxy, https)
        self._resources: dict[tuple[str, str], tuple[str, bool]] = {}
        """Plural and whether it is in a namespace, by apiVersion and kind."""
        self.warnings: list[str] = []
        """What the last answer warned of: pods that break the namespace's security level."""

    def create(self, manifest: Manifest, *, dry_run: bool = False, strict: bool = True) -> Manifest:
        """The object with its defaults. RefusedError; LookupError where there is no such kind."""
        answer = self.request(
            "POST",
            self.collection(manifest),
            manifest,
            fieldManager=FIELD_MANAGER,
            fieldValidation="Strict" if strict else "Ignore",
            **_dry(dry_run),
        )
        return dict(answer)

    def apply(self, manifest: Manifest, *, dry_run: bool = False) -> Manifest:
        """Server-side apply: create it, or change what is there. Unknown fields are refused."""
        answer = self.request(
            "PATCH",
            self.path(manifest),
            manifest,
            content_type="application/apply-patch+yaml",
            fieldManager=FIELD_MANAGER,
            force="true",
            fieldValidation="Strict",
            **_dry(dry_run),
        )
        return dict(answer)

    def read(self, manifest: Manifest) -> Manifest | None:
        """As it is now; None where it is not there. Only what names it is looked at."""
        try:
            return dict(self.request("GET", self.path(manifest)))
        except RefusedError as refusal:
            if refusal.status != 404:
                raise
            return None

    def find(self, version: str, kind: str, namespace: str, labels: str = "") -> list[Manifest]:
        """All of a namespace that have these labels: `a=b,c=d`."""
        like = {"apiVersion": version, "kind": kind, "metadata": {"namespace": namespace}}
        selected = {"labelSelector": labels} if labels else {}
        return list(self.request("GET", self.collection(like), **selected)["items"])

    def delete(self, manifest: Manifest) -> None:
        """Asks for it; what belongs to it goes later, too."""
        self.request("DELETE", self.path(manifest), propagationPolicy="Background")

    def path(self, manifest: Manifest) -> str:
        return f"{self.collection(manifest)}/{manifest['metadata']['name']}"

    def collection(self, manifest: Manifest) -> str:
        """`/apis/batch/v1/namespaces/default/jobs`. LookupError where there is no such kind."""
        version = manifest["apiVersion"]
        plural, is_namespaced = self._resource(version, manifest["kind"])
        namespace = manifest["metadata"].get("namespace", "default")
        within = f"/namespaces/{namespace}" if is_namespaced else ""
        return f"{_root(version)}{within}/{plural}"

    def is_namespaced(self, manifest: Manifest) -> bool:
        return self._resource(manifest["apiVersion"], manifest["kind"])[1]

    def is_served(self, version: str, kind: str) -> bool:
        """Does the server know this kind?"""
        try:
            self._resource(version, kind)
        except LookupError:
            return False
        return True

    def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | bytes | None = None,
        *,
        content_type: str = "application/json",
        **parameters: str,
    ) -> Any:
        """The answer's JSON, or its text. RefusedError; OSError where nobody answers."""
        data = json.dumps(body).encode() if isinstance(body, Mapping) else body
        asked = self._asked(method, path, data, {"Content-Type": content_type}, parameters)
        try:
            with self._opener.open(asked, timeout=HANG_S) as answer:
                warned = map(_WARNING.match, answer.headers.get_all("Warning") or ())
                self.warnings = [each[1] for each in warned if each]
                is_json = answer.headers.get_content_type() == "application/json"
                text = answer.read()
        except urllib.error.HTTPError as error:
            raise _refusal(error) from None
        return json.loads(text) if is_json else text.decode()

    def lines(self, path: str, **parameters: str) -> Iterator[str]:
        """Of an answer that lasts, such as a log that is followed, as they come. RefusedError;
        OSError where nobody answers, or no more."""
        asked = self._asked("GET", path, None, {}, parameters)
        try:
            answer = self._opener.open(asked, timeout=HANG_S)
        except urllib.error.HTTPError as error:
            raise _refusal(error) from None
        with answer:
            for line in answer:
                yield line.decode().removesuffix("\n")

    def _asked(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        parameters: Mapping[str, str],
    ) -> urllib.request.Request:
        query = f"?{urllib.parse.urlencode(parameters)}" if parameters else ""
        return urllib.request.Request(
            f"{self._url}{path}{query}",
            method=method,
            data=body,
            headers={"Authorization": f"Bearer {self._token}", **headers},
        )

    def _resource(self, version: str, kind: str) -> tuple[str, bool]:
        if (version, kind) not in self._resources:
            try:
                known = self.request("GET", _root(version))["resources"]
            except RefusedError:
                known = []
            for each in known:
                if "/" not in each["name"]:
                    found = each["name"], each["namespaced"]
                    self._resources[version, each["kind"]] = found
        if (version, kind) not in self._resources:
            raise LookupError(f"the API server has no kind {kind} of {version}")
        return self._resources[version, kind]


def _root(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


def _dry(dry_run: bool) -> dict[str, str]:
    return {"dryRun": "All"} if dry_run else {}


def _refusal(error: urllib.error.HTTPError) -> RefusedError:
    text = error.read().decode(errors="replace")
    try:
        said = json.loads(text)
    except ValueError:
        return RefusedError(error.code, error.reason, text.strip())
    return RefusedError(error.code, said.get("reason", error.reason), said.get("message", text))
