"""A service account of a test's namespace, without a right at first, and its kubeconfig."""

import json
from pathlib import Path

from tests.kubernetes.cluster.api import Manifest
from tests.kubernetes.cluster.control_plane import ControlPlane
from tests.kubernetes.cluster.scratch import Scratch


class Account:
    """Made when it is named."""

    def __init__(self, scratch: Scratch, control_plane: ControlPlane, name: str) -> None:
        self.subject: Manifest = {
            "kind": "ServiceAccount",
            "name": name,
            "namespace": scratch.namespace,
        }
        """As a RoleBinding names it."""
        self.user = f"system:serviceaccount:{scratch.namespace}:{name}"
        """As the API server names it."""
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
        scratch.create(account)
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        path = f"{scratch.api.path(scratch.placed(account))}/token"
        self.token: str = scratch.api.request("POST", path, asked)["status"]["token"]
        self._config = json.loads(control_plane.kubeconfig.read_text())
        self._config["users"][0]["user"] = {"token": self.token}
        self._config["contexts"][0]["context"]["namespace"] = scratch.namespace

    def write_kubeconfig(self, path: Path) -> None:
        """Its context is of the test's namespace."""
        path.write_text(json.dumps(self._config))
