"""Pods of the tests: written in few words, applied, waited for and read."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from tests.kubernetes.cluster.api import Manifest, RefusedError
from tests.kubernetes.cluster.scratch import Scratch
from tests.kubernetes.cluster.waiting import wait_until

ENDED = ("Succeeded", "Failed")


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

    def __init__(self, scratch: Scratch) -> None:
        self.scratch, self.namespace = scratch, scratch.namespace
        self._api = scratch.api

    def apply(self, manifest: Manifest) -> Manifest:
        """In this namespace, whatever kind it is."""
        return self.scratch.apply(manifest)

    def config_map(self, name: str, kind: str = "ConfigMap", **data: str) -> None:
        """Or, by `kind`, a Secret; keys with `_dot_` for a dot."""
        key = "data" if kind == "ConfigMap" else "stringData"
        named = {word.replace("_dot_", "."): text for word, text in data.items()}
        self.apply({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, key: named})

    def get(self, name: str) -> Manifest:
        return dict(self._api.request("GET", self._path(name)))

    def is_there(self, name: str) -> bool:
        try:
            self.get(name)
        except RefusedError as refusal:
            if refusal.status != 404:
                raise
            return False
        return True

    def find(self, labels: str = "") -> list[Manifest]:
        """All that have these labels."""
        return self.scratch.find("v1", "Pod", labels)

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
        assert self.phase(name) == "Succeeded", self.get(name)["status"]
        return self.log(name)

    def wait_end(self, name: str) -> None:
        wait_until(lambda: self.phase(name) in ENDED, f"the end of {name}")

    def wait_phase(self, name: str, phase: str) -> None:
        wait_until(lambda: self.phase(name) == phase, f"{name} {phase}")

    def wait_reason(self, name: str, reason: str, container: str = "main") -> str:
        """Until a container waits for this reason; its message then."""
        seen: Manifest = {}

        def waits() -> bool:
            seen.clear()
            seen.update(self.status(name, container)["state"].get("waiting") or {})
            return seen.get("reason") == reason

        wait_until(waits, reason)
        return str(seen.get("message"))

    def wait_event(self, name: str, reason: str, words: str = "") -> str:
        """Until a pod has an event of this reason whose message has these words; the message."""

        def messages() -> list[str]:
            return [
                one["message"]
                for one in self.scratch.find("v1", "Event")
                if one["reason"] == reason and one["involvedObject"]["name"] == name
                if words in one["message"]
            ]

        wait_until(lambda: bool(messages()), f"the event {reason} of {name}")
        return messages()[0]

    def log(self, name: str, **parameters: str) -> str:
        """Of the container `main`, unless told. RefusedError where it has none yet."""
        asked = {"container": "main"} | parameters
        return str(self._api.request("GET", f"{self._path(name)}/log", **asked))

    def follow(self, name: str, **parameters: str) -> Iterator[str]:
        """The lines of its log, as they come, until the stream ends."""
        asked = {"container": "main", "follow": "true"} | parameters
        return self._api.lines(f"{self._path(name)}/log", **asked)

    def wait_log(self, name: str, text: str) -> str:
        """Until the log has this text; the whole log."""
        seen = ""

        def has_it() -> bool:
            nonlocal seen
            with suppress(RefusedError):  # it has not begun yet
                seen = self.log(name)
            return text in seen

        wait_until(has_it, f"{text!r} of {name}")
        return seen

    def delete(self, name: str, **parameters: str) -> None:
        self._api.request("DELETE", self._path(name), **parameters)

    def wait_gone(self, name: str) -> None:
        wait_until(lambda: not self.is_there(name), f"{name} to be gone")

    def evict(self, name: str) -> None:
        """By the eviction API. RefusedError."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": self.namespace},
        }
        self._api.request("POST", f"{self._path(name)}/eviction", body)

    def _path(self, name: str) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods/{name}"
