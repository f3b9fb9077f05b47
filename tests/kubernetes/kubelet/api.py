"""How does the kubelet speak with the API server: requests, lists that are watched, events?

Plain JSON over the standard library's HTTP client: a kubelet hands objects on as they are.
"""

import base64
import http.client
import json
import logging
import queue
import ssl
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Json = dict[str, Any]
log = logging.getLogger("kubelet.api")
MERGE = "application/merge-patch+json"
RETRIES_S = (0.2, 0.5, 1.0, 2.0, 5.0)
_UNREACHABLE_S = 0.5
_ANSWER_S = 60.0
UNREACHABLE = (OSError, http.client.HTTPException)


class RefusedError(Exception):
    """The API server's answer was an error."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text}")
        self.status = status


class Api:
    """Requests to one API server, from any thread."""

    def __init__(self, kubeconfig: Path) -> None:
        """Of a kubeconfig as JSON, with one cluster and one user, who has a token."""
        config = json.loads(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._place = urllib.parse.urlsplit(cluster["server"]).netloc
        self._token = user["token"]
        self._tls = ssl.create_default_context(cadata=authority)
        self._idle: queue.LifoQueue[http.client.HTTPSConnection] = queue.LifoQueue()

    def request(
        self, method: str, path: str, body: Json | None = None, kind: str = "application/json"
    ) -> Json:
        """Raises RefusedError. Waits as long as nobody answers, a while where asked to."""
        content = None if body is None else json.dumps(body).encode()
        pauses_s = iter(RETRIES_S)
        while True:
            try:
                status, text = self._ask(method, path, content, kind)
            except UNREACHABLE as error:
                log.info("%s %s: %s", method, path, error)
                time.sleep(_UNREACHABLE_S)
                continue
            if status < 400:
                return dict(json.loads(text))
            pause_s = next(pauses_s, None)
            if status not in (429, 500, 502, 503, 504) or pause_s is None:
                raise RefusedError(status, text.decode(errors="replace"))
            time.sleep(pause_s)

    def _ask(self, method: str, path: str, body: bytes | None, kind: str) -> tuple[int, bytes]:
        """Over a connection that is free, or a new one. Status and body."""
        try:
            connection = self._idle.get_nowait()
        except queue.Empty:
            connection = self._connection()
        try:
            connection.request(method, path, body, self._headers(kind))
            answer = connection.getresponse()
            said = answer.status, answer.read()
        except BaseException:
            connection.close()
            raise
        self._idle.put(connection)
        return said

    def _connection(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._place, timeout=_ANSWER_S, context=self._tls)

    def _headers(self, kind: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}", "Content-Type": kind}

    def get(self, path: str) -> Json | None:
        """The object, None if there is none."""
        try:
            return self.request("GET", path)
        except RefusedError as refused:
            if refused.status == 404:
                return None
            raise

    def patch(self, path: str, body: Json) -> Json | None:
        """A merge patch; None if the object is gone."""
        try:
            return self.request("PATCH", path, body, MERGE)
        except RefusedError as refused:
            if refused.status == 404:
                return None
            raise

    def create(self, path: str, body: Json) -> Json | None:
        """None if it is there already."""
        try:
            return self.request("POST", path, body)
        except RefusedError as refused:
            if refused.status == 409:
                return None
            raise

    def delete(self, path: str, body: Json | None = None) -> None:
        """Gone already, or replaced by another of that name, is as good."""
        try:
            self.request("DELETE", path, body)
        except RefusedError as refused:
            if refused.status not in (404, 409):
                raise

    def watch_lines(self, path: str) -> Iterator[Json]:
        """Events of a watch until the server ends it."""
        connection = self._connection()
        try:
            connection.request("GET", path, headers=self._headers("application/json"))
            assert connection.sock is not None
            socket = connection.sock
            answer = connection.getresponse()
            if answer.status >= 400:
                raise RefusedError(answer.status, answer.read().decode(errors="replace"))
            socket.settimeout(None)  # nothing may happen for long
            for line in answer:
                yield json.loads(line)
        finally:
            connection.close()


OnChange = Callable[[str, Json], None]
"""Given "ADDED", "MODIFIED" or "DELETED", and the object."""


class Watched:
    """A collection that is kept up to date: what is there now, by namespace and name."""

    def __init__(self, api: Api, path: str, on_change: OnChange | None = None) -> None:
        self._api, self._path, self._on_change = api, path, on_change
        self.objects: dict[tuple[str, str], Json] = {}
        self._synced = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"watch {path}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wait(self) -> None:
        """Until the first list is in."""
        self._synced.wait()

    def get(self, namespace: str, name: str) -> Json | None:
        return self.objects.get((namespace, name))

    def _run(self) -> None:
        while True:
            try:
                version = self._list()
                self._watch(version)
            except (RefusedError, *UNREACHABLE, ValueError) as error:
                log.warning("watch of %s: %s", self._path, error)
                time.sleep(0.5)

    def _list(self) -> str:
        answer = self._api.request("GET", self._path)
        found = {_key(one): one for one in answer.get("items") or ()}
        for key in [key for key in self.objects if key not in found]:
            self._take("DELETED", self.objects[key])
        for key, one in found.items():
            before = self.objects.get(key)
            if before is None:
                self._take("ADDED", one)
            elif before["metadata"]["uid"] != one["metadata"]["uid"]:
                self._take("DELETED", before)
                self._take("ADDED", one)
            elif before["metadata"]["resourceVersion"] != one["metadata"]["resourceVersion"]:
                self._take("MODIFIED", one)
        self._synced.set()
        return str(answer["metadata"]["resourceVersion"])

    def _watch(self, version: str) -> None:
        joiner = "&" if "?" in self._path else "?"
        path = f"{self._path}{joiner}watch=true&resourceVersion={version}&allowWatchBookmarks=true"
        for event in self._api.watch_lines(path):
            if event["type"] == "ERROR":
                raise RefusedError(
                    event["object"].get("code", 0), str(event["object"].get("message"))
                )
            if event["type"] != "BOOKMARK":
                self._take(event["type"], event["object"])

    def _take(self, kind: str, one: Json) -> None:
        if kind == "DELETED":
            self.objects.pop(_key(one), None)
        else:
            self.objects[_key(one)] = one
        if self._on_change is not None:
            self._on_change(kind, one)


def _key(one: Json) -> tuple[str, str]:
    metadata = one["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def now_text() -> str:
    """Now, as the API writes times."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Events:
    """Tells the API server what happens to pods, in the background; the last of many in a row."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._waiting: queue.Queue[Json] = queue.Queue()
        self._number = 0
        threading.Thread(target=self._run, name="events", daemon=True).start()

    def tell(self, pod: Json, reason: str, message: str, *, warning: bool = False) -> None:
        metadata = pod["metadata"]
        self._number += 1
        self._waiting.put(
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {
                    "namespace": metadata["namespace"],
                    "name": f"{metadata['name']}.{time.time_ns():x}{self._number:x}",
                },
                "involvedObject": {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "namespace": metadata["namespace"],
                    "name": metadata["name"],
                    "uid": metadata["uid"],
                },
                "reason": reason,
                "message": message,
                "type": "Warning" if warning else "Normal",
                "source": {"component": "kubelet", "host": pod["spec"]["nodeName"]},
                "firstTimestamp": now_text(),
                "lastTimestamp": now_text(),
                "count": 1,
            }
        )

    def _run(self) -> None:
        while True:
            event = self._waiting.get()
            path = f"/api/v1/namespaces/{event['metadata']['namespace']}/events"
            try:
                self._api.create(path, event)
            except RefusedError as refused:  # a namespace that is being deleted takes none
                log.info("event not taken: %s", refused)
