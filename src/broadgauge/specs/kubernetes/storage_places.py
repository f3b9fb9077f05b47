"""What is there in a pod at a storage's path: a volume of the user's, the pod's own disk or memory,
or nothing but the container's layer?"""

import posixpath

from broadgauge.specs.kubernetes.pod_volumes import SCRATCH, WORK, Volume
from broadgauge.specs.kubernetes.settings import Kubernetes
from broadgauge.specs.storages.storage import Storage

MEMORY = "/dev/shm"


def path_in_pod(storage: Storage, settings: Kubernetes) -> str:
    """A relative path starts where ranks run."""
    path = posixpath.join(settings.working_folder or WORK, storage.path)
    return "/" + posixpath.normpath(path).lstrip("/")


def unwritable_volume(storage: Storage, settings: Kubernetes, workload: str) -> Volume | None:
    """On which no rank may write there. None: it may, or no volume of the user's is there."""
    found = _volume_at(path_in_pod(storage, settings), settings, workload)
    return None if found is None or found.is_writable else found


def words_in_pods(storage: Storage, settings: Kubernetes, workload: str) -> str | None:
    """What is measured there, for people; None: a volume of the user's."""
    path = path_in_pod(storage, settings)
    if _volume_at(path, settings, workload) is not None:
        return None
    if _is_below(path, MEMORY):
        return f"{path} is each pod's memory, as much as `kubernetes.shm_bytes` says"
    if _is_below(path, SCRATCH):
        return f"{path} is each pod's own emptyDir, on its node's disk as a rule"
    return (
        f"no volume is mounted at {path}, so that pods measure their container's own layer, if the "
        f"image has that folder: `kubernetes.volumes: [{{name: {storage.name}, claim: my-claim, "
        f"mount: {path}}}]`"
    )


def _volume_at(path: str, settings: Kubernetes, workload: str) -> Volume | None:
    """The one that is mounted deepest."""
    found = [each for each in settings.volumes_of(workload) if _is_below(path, each.path)]
    return max(found, key=lambda each: len(each.path), default=None)


def _is_below(path: str, folder: str) -> bool:
    return f"{path}/".startswith(f"{folder}/")
