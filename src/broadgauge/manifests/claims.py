"""Which PersistentVolumeClaims are made? Those that say how large; they outlive every job."""

from broadgauge.manifests import names
from broadgauge.manifests.files import ManifestFile
from broadgauge.manifests.job import JobPods
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.specs.kubernetes.pod_volumes import Volume


def claims_file(job: JobPods) -> ManifestFile | None:
    """None: all are there."""
    made = [each for each in job.settings.volumes if each.size_bytes is not None]
    if not made:
        return None
    return ManifestFile(
        path="30-storage/claims.yaml",
        comment="Volumes that the pods mount. They stay when a job is deleted.\n"
        "From the experiment's `kubernetes.volumes`, those with `size_bytes`.",
        objects=tuple(_claim(job, each) for each in made),
    )


def _claim(job: JobPods, volume: Volume) -> Manifest:
    spec: Manifest = {
        "accessModes": [volume.access],
        "resources": {"requests": {"storage": str(volume.size_bytes)}},
    }
    if volume.storage_class is not None:
        spec["storageClassName"] = volume.storage_class
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": names.metadata(job, volume.claim_name, names.experiment_labels(job)),
        "spec": spec,
    }
