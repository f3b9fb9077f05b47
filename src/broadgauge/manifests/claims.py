"""Which PersistentVolumeClaims are made? Those that say how large; they outlive every run."""

from broadgauge.manifests.files import ManifestFile
from broadgauge.manifests.labels import lasting_labels
from broadgauge.manifests.request import JobRequest
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.specs.kubernetes import Volume


def claims_file(request: JobRequest) -> ManifestFile | None:
    """None: all are there."""
    made = [each for each in request.settings.volumes if each.size_bytes is not None]
    if not made:
        return None
    return ManifestFile(
        path="30-storage/claims.yaml",
        comment="Volumes that the pods mount. They stay when a run is deleted.\n"
        "From the experiment's `kubernetes.volumes`, those with a size.",
        objects=tuple(_claim(request, each) for each in made),
    )


def _claim(request: JobRequest, volume: Volume) -> Manifest:
    settings = request.settings
    space = {} if settings.namespace is None else {"namespace": settings.namespace}
    own = lasting_labels(request.experiment.name, settings.labels)
    spec: Manifest = {
        "accessModes": [volume.access],
        "resources": {"requests": {"storage": str(volume.size_bytes)}},
    }
    if volume.storage_class is not None:
        spec["storageClassName"] = volume.storage_class
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": volume.claim_name, **space, "labels": own},
        "spec": spec,
    }
