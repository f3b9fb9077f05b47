"""Pods of the tests: written in few words, applied, waited for and read."""

from typing import Any

import httpx2
from tests.kubernetes.cluster.objects import Manifest, Objects
from tests.kubernetes.cluster.waiting import wait_until

ENDED = ("Succeeded", "Failed")
_LIMIT_S = 120.0


def pod_manifest(name: str, script: str, **spec: Any) -> Manifest:
    """A pod whose one container, `main`, is a shell script.

    Keys that begin with `main_` are the container's: `main_env=[…]`; `annotations` and `labels` are
    the pod's; all others its spec's.
    """
    container: dict[str, Any] = {"name": "main", "image": "host", "command": ["sh", "-c", script]}
    container |= {key[5:]: spec.pop(key) for key in list(spec) if key.startswith("main_")}
    metadata = {"name": name}
    metadata |= {key: spec.pop(key) for key in ("annotations", "labels") if key in spec}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
            **spec,
        },
    }


class Pods:
    """The pods of one namespace."""

    def __init__(self, http: httpx2.Client, namespace: str) -> None:
        self._http, self.namespace = http, namespace
        self.objects = Objects(http)

    def apply(self, manifest: Manifest) -> Manifest:
        """In this namespace, whatever kind it is."""
        placed = manifest | {"metadata": manifest["metadata"] | {"namespace": self.namespace}}
        return self.objects.apply(placed)

    def config_map(self, name: str, kind: str = "ConfigMap", **data: str) -> None:
        """Or, by `kind`, a Secret; keys with `_dot_` for a dot."""
        key = "data" if kind == "ConfigMap" else "stringData"
        named = {word.replace("_dot_", "."): text for word, text in data.items()}
        self.apply({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, key: named})

    def get(self, name: str) -> Manifest:
        return dict(self._http.get(self._path(name)).raise_for_status().json())

    def read(self, group: str, path: str) -> Manifest:
        """`apis/batch/v1` and `jobs/name`, or a list of this namespace's."""
        found = self._http.get(f"/{group}/namespaces/{self.namespace}/{path}")
        return dict(found.raise_for_status().json())

    def is_there(self, name: str) -> bool:
        return self._http.get(self._path(name)).status_code == httpx2.codes.OK

    def phase(self, name: str) -> str:
        return str(self.get(name)["status"]["phase"])

    def status(self, name: str, container: str = "main") -> Manifest:
        """Of a container: its state, lastState, restartCount."""
        status = self.get(name)["status"]
        both = [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]
        return next((one for one in both if one["name"] == container), {"state": {}})

    def run(self, manifest: Manifest) -> str:
        """Apply it, wait for its success, and give its log."""
        name = manifest["metadata"]["name"]
        self.apply(manifest)
        self.wait_end(name)
        assert self.phase(name) == "Succeeded", (self.get(name)["status"], self.log(name))
        return self.log(name)

    def wait_end(self, name: str) -> None:
        wait_until(lambda: self.phase(name) in ENDED, limit_s=_LIMIT_S, what=f"the end of {name}")

    def wait_phase(self, name: str, phase: str) -> None:
        wait_until(lambda: self.phase(name) == phase, limit_s=_LIMIT_S, what=f"{name} {phase}")

    def wait_reason(self, name: str, reason: str, container: str = "main") -> str:
        """Until a container waits for this reason; its message then."""
        seen: Manifest = {}

        def waits() -> bool:
            seen.clear()
            seen.update(self.status(name, container)["state"].get("waiting") or {})
            return seen.get("reason") == reason

        wait_until(waits, limit_s=_LIMIT_S, what=reason)
        return str(seen.get("message"))

    def wait_event(self, name: str, reason: str, words: str = "") -> str:
        """Until a pod has an event of this reason whose message has these words; the message."""

        def messages() -> list[str]:
            path = f"/api/v1/namespaces/{self.namespace}/events"
            events = self._http.get(path).raise_for_status().json()["items"]
            return [
                one["message"]
                for one in events
                if one["reason"] == reason and one["involvedObject"]["name"] == name
                if words in one["message"]
            ]

        wait_until(lambda: bool(messages()), limit_s=_LIMIT_S, what=f"the event {reason} of {name}")
        return messages()[0]

    def log(self, name: str, **parameters: str) -> str:
        """Of the container `main`, unless told."""
        asked = {"container": "main"} | parameters
        return self._http.get(f"{self._path(name)}/log", params=asked).text

    def wait_log(self, name: str, text: str) -> str:
        """Until the log has this text; the whole log."""
        wait_until(lambda: text in self.log(name), limit_s=_LIMIT_S, what=f"{text!r} of {name}")
        return self.log(name)

    def delete(self, name: str, **parameters: str) -> None:
        self._http.delete(self._path(name), params=parameters).raise_for_status()

    def wait_gone(self, name: str) -> None:
        wait_until(lambda: not self.is_there(name), limit_s=_LIMIT_S, what=f"{name} to be gone")

    def evict(self, name: str) -> httpx2.Response:
        """By the eviction API."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": self.namespace},
        }
        return self._http.post(f"{self._path(name)}/eviction", json=body)

    def _path(self, name: str) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods/{name}"
