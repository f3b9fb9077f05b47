"""Objects of any kind as plain manifests: where does the API server keep them?"""

from typing import Any

import httpx2

Manifest = dict[str, Any]
FIELD_MANAGER = "broadgauge-tests"


class Objects:
    """Requests about manifests, whatever kinds the API server knows at that moment."""

    def __init__(self, http: httpx2.Client) -> None:
        self._http = http
        self._resources: dict[tuple[str, str], tuple[str, bool]] = {}
        """Plural and whether it is in a namespace, by apiVersion and kind."""

    def apply(self, manifest: Manifest) -> Manifest:
        """Server-side apply; AssertionError with the API server's words where it is refused."""
        response = self._http.patch(
            self.path(manifest),
            params={"fieldManager": FIELD_MANAGER, "force": "true"},
            headers={"Content-Type": "application/apply-patch+yaml"},
            json=manifest,
        )
        return _accepted(response, manifest)

    def create(self, manifest: Manifest, **parameters: str) -> httpx2.Response:
        """Whatever the API server answers."""
        return self._http.post(self.collection(manifest), params=parameters, json=manifest)

    def replace(self, manifest: Manifest, **parameters: str) -> httpx2.Response:
        """Of an object that is there, whatever the API server answers."""
        there = _accepted(self._http.get(self.path(manifest)), manifest)
        version = {"resourceVersion": there["metadata"]["resourceVersion"]}
        newer = manifest | {"metadata": manifest["metadata"] | version}
        return self._http.put(self.path(manifest), params=parameters, json=newer)

    def read(self, manifest: Manifest) -> Manifest | None:
        """As it is now; None where it is not there."""
        response = self._http.get(self.path(manifest))
        if response.status_code == httpx2.codes.NOT_FOUND:
            return None
        return _accepted(response, manifest)

    def delete(self, manifest: Manifest) -> None:
        """Asks for it; what belongs to it goes later, too."""
        response = self._http.delete(
            self.path(manifest), params={"propagationPolicy": "Background"}
        )
        _accepted(response, manifest)

    def path(self, manifest: Manifest) -> str:
        return f"{self.collection(manifest)}/{manifest['metadata']['name']}"

    def collection(self, manifest: Manifest) -> str:
        """`/apis/batch/v1/namespaces/default/jobs`. LookupError where it has no such kind."""
        version, kind = manifest["apiVersion"], manifest["kind"]
        plural, is_namespaced = self._resource(version, kind)
        namespace = manifest["metadata"].get("namespace", "default")
        within = f"/namespaces/{namespace}" if is_namespaced else ""
        return f"{_root(version)}{within}/{plural}"

    def is_namespaced(self, manifest: Manifest) -> bool:
        return self._resource(manifest["apiVersion"], manifest["kind"])[1]

    def _resource(self, version: str, kind: str) -> tuple[str, bool]:
        if (version, kind) not in self._resources:
            response = self._http.get(_root(version))
            known = response.json()["resources"] if response.is_success else []
            for each in known:
                if "/" not in each["name"]:
                    found = (each["name"], each["namespaced"])
                    self._resources[version, each["kind"]] = found
        if (version, kind) not in self._resources:
            raise LookupError(f"the API server has no {kind} of {version}")
        return self._resources[version, kind]


def _root(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


def _accepted(response: httpx2.Response, manifest: Manifest) -> Manifest:
    name = manifest["metadata"].get("name")
    assert response.is_success, f"{manifest['kind']} {name}: {response.text}"
    return response.json()
