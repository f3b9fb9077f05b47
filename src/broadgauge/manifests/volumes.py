"""What is mounted in a pod, and where?"""

from dataclasses import dataclass

from broadgauge.agent.pod.facts import ANNOTATIONS_FOLDER
from broadgauge.manifests import names
from broadgauge.manifests.asked_network import is_status_needed
from broadgauge.manifests.config_maps import file_keys
from broadgauge.manifests.job import JobPods
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.specs.kubernetes.pod_volumes import OURS, SCRATCH, Volume
from broadgauge.specs.kubernetes.settings import Kubernetes

PROGRAM = f"{OURS}/program"
CASE = f"{OURS}/case"
FILES = f"{OURS}/files"
ADDRESSES = f"{OURS}/addresses"
ORDERS = f"{OURS}/orders"
TOPOLOGY = f"{OURS}/topology"
_POD_INFO = {
    "downwardAPI": {
        "items": [{"path": "annotations", "fieldRef": {"fieldPath": "metadata.annotations"}}]
    }
}
"""All annotations, since which of its two names Multus takes is its own to choose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mounted:
    """A volume of the pod, and its mount in the ranks' container."""

    volume: Manifest
    mount: Manifest


def mounted(job: JobPods, *more: Mounted) -> list[Mounted]:
    """Ours first, `more` among them, then the user's claims, whose names in the pod are none of
    ours."""
    found = [mounted_program(job), *more]
    if job.files:
        files = _of_config_map("broadgauge-files", FILES, names.files_name(job))
        keys = file_keys(job.files)
        files.volume["configMap"]["items"] = [{"key": keys[path], "path": path} for path in keys]
        found.append(files)
    if job.topology is not None:
        found.append(_of_config_map("broadgauge-topology", TOPOLOGY, names.topology_name(job)))
    if is_status_needed(job):
        found.append(
            _mounted("broadgauge-podinfo", ANNOTATIONS_FOLDER, _POD_INFO, is_read_only=True)
        )
    found.append(_mounted("broadgauge-scratch", SCRATCH, {"emptyDir": {}}))
    in_memory = {"medium": "Memory", "sizeLimit": str(job.shm_bytes)}
    found.append(_mounted("broadgauge-shm", "/dev/shm", {"emptyDir": in_memory}))
    return found + [mounted_claim(job.settings, each) for each in job.volumes]


def mounted_claim(settings: Kubernetes, volume: Volume) -> Mounted:
    """One of the user's, under the same name in every pod."""
    number = 1 + settings.volumes.index(volume)
    return _mounted(
        f"claim-{number}", volume.path, _source(volume), is_read_only=volume.is_read_only
    )


def mounted_program(job: JobPods) -> Mounted:
    """The zip file that the job's pods run."""
    return _of_config_map("broadgauge-program", PROGRAM, names.program_name(job))


def mounted_case(job: JobPods) -> Mounted:
    """What the job's pods are told, where nobody leads them."""
    return _of_config_map("broadgauge-case", CASE, names.case_name_of(job))


def _source(volume: Volume) -> Manifest:
    """Whose files a volume of the user's has."""
    if volume.config_map is not None:
        return {"configMap": {"name": volume.config_map}}
    return {"persistentVolumeClaim": {"claimName": volume.claim_name}}


def mounted_for_addresses(job: JobPods) -> list[Mounted]:
    """In the container that sets addresses: the program, which the ranks' has too, and the map."""
    return [
        mounted_program(job),
        _of_config_map("broadgauge-addresses", ADDRESSES, names.address_map_name(job)),
    ]


def mounted_for_leader(job: JobPods) -> list[Mounted]:
    """In the container of a run's leader: the program, its orders, a folder that ranks don't see,
    at the same place as theirs, and the volume that keeps what is measured."""
    volume = job.settings.results_volume
    return [
        mounted_program(job),
        _of_config_map("broadgauge-orders", ORDERS, names.orders_name(job)),
        _mounted("broadgauge-leader", SCRATCH, {"emptyDir": {}}),
        *([] if volume is None else [mounted_claim(job.settings, volume)]),
    ]


def results_folder(job: JobPods) -> str | None:
    """Of this run alone, on the volume that keeps what is measured; None: none does."""
    volume = job.settings.results_volume
    return None if volume is None else f"{volume.path}/broadgauge-results/{job.marks[names.RUN]}"


def _of_config_map(volume: str, path: str, name: str) -> Mounted:
    return _mounted(volume, path, {"configMap": {"name": name}}, is_read_only=True)


def _mounted(name: str, path: str, source: Manifest, *, is_read_only: bool = False) -> Mounted:
    mount: Manifest = {"name": name, "mountPath": path}
    if is_read_only:
        mount["readOnly"] = True
    return Mounted(volume={"name": name, **source}, mount=mount)
