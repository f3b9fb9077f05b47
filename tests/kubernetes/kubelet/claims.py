"""Who provides volumes? A provisioner of our StorageClass: each claim gets a folder here.

The volume controller of kube-controller-manager binds what is made here, as with any provisioner.
"""

import logging
import shutil
from pathlib import Path
from typing import Any

from tests.kubernetes.kubelet.api import Api, RefusedError, Watched
from tests.kubernetes.kubelet.config import Storage
from tests.kubernetes.kubelet.volumes import ClaimFolder, MountError

Json = dict[str, Any]
log = logging.getLogger("kubelet.claims")
PROVISIONER = "process-kubelet.test/folder"
_CLAIMS, _VOLUMES = "/api/v1/persistentvolumeclaims", "/api/v1/persistentvolumes"
_PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"


class Claims:
    """Claims and volumes of the cluster."""

    def __init__(self, api: Api, storage: Storage | None) -> None:
        self._api, self._storage = api, storage
        self._claims = Watched(api, _CLAIMS, self._on_claim)
        self._volumes = Watched(api, _VOLUMES, self._on_volume)

    def start(self) -> None:
        if self._storage is not None:
            self._make_class(self._storage)
        self._claims.start()
        self._volumes.start()

    def folder_of(self, namespace: str, name: str) -> ClaimFolder:
        """Where a bound claim's volume is. Raises MountError."""
        claim = self._api.get(f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}")
        if claim is None:
            raise MountError(f'persistentvolumeclaim "{name}" not found')
        volume_name = claim["spec"].get("volumeName")
        if not volume_name or (claim.get("status") or {}).get("phase") != "Bound":
            raise MountError(f'persistentvolumeclaim "{name}" is not bound yet')
        volume = self._api.get(f"{_VOLUMES}/{volume_name}")
        source = None if volume is None else volume["spec"].get("hostPath")
        if source is None:
            raise MountError(f'MountVolume.SetUp failed for volume "{volume_name}" : only folders '
                             "of this machine (hostPath) can be mounted here")  # fmt: skip
        folder = Path(source["path"])
        if not folder.is_dir():
            raise MountError(f'MountVolume.SetUp failed for volume "{volume_name}" : hostPath type '
                             f"check failed: {folder} is not a directory")  # fmt: skip
        annotations = volume["metadata"].get("annotations") or {}
        return ClaimFolder(folder, annotations.get(_PROVISIONED_BY) == PROVISIONER)

    def _make_class(self, storage: Storage) -> None:
        annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
        self._api.create(
            "/apis/storage.k8s.io/v1/storageclasses",
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {
                    "name": storage.class_name,
                    "annotations": annotations if storage.is_default else {},
                },
                "provisioner": PROVISIONER,
                "reclaimPolicy": "Delete",
                "volumeBindingMode": "Immediate",
            },
        )

    def _on_claim(self, kind: str, claim: Json) -> None:
        storage = self._storage
        if storage is None or kind == "DELETED":
            return
        spec = claim["spec"]
        if spec.get("storageClassName") != storage.class_name or spec.get("volumeName"):
            return
        metadata = claim["metadata"]
        name = f"pvc-{metadata['uid']}"
        assert storage.folder is not None
        folder = (
            storage.folder / f"{metadata['namespace']}-{metadata['name']}-{metadata['uid'][:8]}"
        )
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)  # of root, as a new file system's
        volume = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name, "annotations": {_PROVISIONED_BY: PROVISIONER}},
            "spec": {
                "accessModes": spec["accessModes"],
                "capacity": {"storage": spec["resources"]["requests"]["storage"]},
                "storageClassName": storage.class_name,
                "persistentVolumeReclaimPolicy": "Delete",
                "volumeMode": spec.get("volumeMode") or "Filesystem",
                "hostPath": {"path": str(folder)},
                "claimRef": {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "namespace": metadata["namespace"],
                    "name": metadata["name"],
                    "uid": metadata["uid"],
                },
            },
        }
        try:
            self._api.create(_VOLUMES, volume)
        except RefusedError as refused:
            log.warning("volume %s: %s", name, refused)

    def _on_volume(self, kind: str, volume: Json) -> None:
        """A released one of ours goes, with its folder."""
        annotations = volume["metadata"].get("annotations") or {}
        phase = (volume.get("status") or {}).get("phase")
        if kind == "DELETED" or annotations.get(_PROVISIONED_BY) != PROVISIONER:
            return
        if phase == "Released" and volume["spec"]["persistentVolumeReclaimPolicy"] == "Delete":
            shutil.rmtree(volume["spec"]["hostPath"]["path"], ignore_errors=True)
            self._api.delete(f"{_VOLUMES}/{volume['metadata']['name']}")
