"""A namespace of a test's own, and requests in it: whatever namespace a manifest names, this one
is meant. After the test it is deleted with all that is in it."""

from tests.kubernetes.cluster.api import Api, Manifest, RefusedError
from tests.kubernetes.cluster.waiting import wait_until

_LOOKED_UP = ("TrainingRuntime", "ClusterTrainingRuntime")
"""Kinds that a webhook must find stored when it judges what names them."""
_NOT_SEEN = "must be created before"


class Scratch:
    """Requests of one user in one namespace."""

    def __init__(self, api: Api, namespace: str) -> None:
        self.api, self.namespace = api, namespace
        self._runtimes: set[str] = set()
        """Stored, by name, in whichever call: a webhook may not have seen the last one yet."""

    def placed(self, manifest: Manifest) -> Manifest:
        """In this namespace, if it is of a kind that has one."""
        if not self.api.is_namespaced(manifest):
            return manifest
        return manifest | {"metadata": manifest["metadata"] | {"namespace": self.namespace}}

    def create(self, manifest: Manifest, *, dry_run: bool = False, strict: bool = True) -> Manifest:
        return self.api.create(self.placed(manifest), dry_run=dry_run, strict=strict)

    def apply(self, manifest: Manifest, *, dry_run: bool = False) -> Manifest:
        return self.api.apply(self.placed(manifest), dry_run=dry_run)

    def read(self, manifest: Manifest) -> Manifest | None:
        return self.api.read(self.placed(manifest))

    def find(self, version: str, kind: str, labels: str = "") -> list[Manifest]:
        return self.api.find(version, kind, self.namespace, labels)

    def dry_run(self, *manifests: Manifest) -> list[Manifest]:
        """Each by a strict server-side dry run, in this order, with the server's defaults.

        A runtime of training jobs is stored once it has passed, since Trainer's webhook refuses a
        TrainJob without it; so one of a name is enough for a namespace. RefusedError of the first
        that is refused.
        """
        answers = []
        for manifest in manifests:
            reference = manifest.get("spec", {}).get("runtimeRef", {}).get("name")
            if reference in self._runtimes:
                self._wait_until_seen(manifest)
            answers.append(self.create(manifest, dry_run=True))
            if manifest["kind"] in _LOOKED_UP:
                self.create(manifest)
                self._runtimes.add(manifest["metadata"]["name"])
        return answers

    def _wait_until_seen(self, manifest: Manifest) -> None:
        """The webhook learns by a watch of what was stored a moment ago."""

        def is_seen() -> bool:
            try:
                self.create(manifest, dry_run=True)
            except RefusedError as refusal:
                return _NOT_SEEN not in refusal.message
            return True

        wait_until(is_seen, f"Trainer to see the runtime of {manifest['metadata']['name']}")
