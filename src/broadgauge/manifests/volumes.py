"""What is mounted in a pod, and where?"""

from dataclasses import dataclass

from broadgauge.manifests import labels
from broadgauge.manifests.config_maps import file_keys
from broadgauge.manifests.request import JobRequest
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.specs.kubernetes import OURS

PROGRAM = f"{OURS}/program"
SCRATCH = f"{OURS}/scratch"
ADDRESSES = f"{OURS}/addresses"
SHM_PER_RANK_BYTES = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Mounted:
    """A volume of the pod, and its mount in the ranks' container."""

    volume: Manifest
    mount: Manifest


def shm_bytes(request: JobRequest) -> int:
    """Of /dev/shm. A container has 64 MiB of its own accord, which NCCL and loaders exceed."""
    return request.settings.shm_bytes or SHM_PER_RANK_BYTES * request.ranks_per_pod


def mounted(request: JobRequest) -> list[Mounted]:
    """Ours first, then the user's."""
    name = request.name
    found = [
        _of_config_map("broadgauge-program", PROGRAM, labels.program_name(name)),
        _of_config_map("broadgauge-orders", f"{OURS}/orders", labels.orders_name(name)),
    ]
    if request.files:
        files = _of_config_map("broadgauge-files", f"{OURS}/files", labels.files_name(name))
        keys = file_keys(request.files)
        files.volume["configMap"]["items"] = [{"key": keys[path], "path": path} for path in keys]
        found.append(files)
    if request.address_map is not None:
        where = labels.addresses_name(name)
        found.append(_of_config_map("broadgauge-addresses", ADDRESSES, where))
    item = {"path": "annotations", "fieldRef": {"fieldPath": "metadata.annotations"}}
    podinfo: Manifest = {"downwardAPI": {"items": [item]}}
    found.append(_mounted("broadgauge-podinfo", f"{OURS}/podinfo", podinfo, is_read_only=True))
    found.append(_mounted("broadgauge-scratch", SCRATCH, {"emptyDir": {}}))
    in_memory = {"medium": "Memory", "sizeLimit": str(shm_bytes(request))}
    found.append(_mounted("broadgauge-shm", "/dev/shm", {"emptyDir": in_memory}))
    return found + _of_fabrics(request) + of_user(request)


def _of_fabrics(request: JobRequest) -> list[Mounted]:
    """What a cloud's fabric has on its nodes, for the ranks."""
    paths = (path for fabric in request.fabrics for path in fabric.host_paths)
    return [
        _mounted(f"fabric-{path.name}", path.mount, {"hostPath": {"path": path.path}})
        for path in dict.fromkeys(paths)
    ]


def of_daemons(request: JobRequest) -> list[Manifest]:
    """Volumes that only a fabric's daemon mounts."""
    daemons = (each.daemon for each in request.fabrics if each.daemon is not None)
    ranks = {path.name for fabric in request.fabrics for path in fabric.host_paths}
    paths = dict.fromkeys(path for daemon in daemons for path in daemon.host_paths)
    return [
        {"name": f"fabric-{path.name}", "hostPath": {"path": path.path}}
        for path in paths
        if path.name not in ranks
    ]


def of_user(request: JobRequest) -> list[Mounted]:
    """The claims. Their names in the pod have a prefix, so that none is taken for ours."""
    return [
        _mounted(
            f"volume-{number}",
            each.mount,
            {"persistentVolumeClaim": {"claimName": each.claim_name}},
            is_read_only=each.is_read_only,
        )
        for number, each in enumerate(request.settings.volumes, start=1)
    ]


def _of_config_map(volume: str, path: str, name: str) -> Mounted:
    return _mounted(volume, path, {"configMap": {"name": name}}, is_read_only=True)


def _mounted(name: str, path: str, source: Manifest, *, is_read_only: bool = False) -> Mounted:
    mount: Manifest = {"name": name, "mountPath": path}
    if is_read_only:
        mount["readOnly"] = True
    return Mounted(volume={"name": name, **source}, mount=mount)
