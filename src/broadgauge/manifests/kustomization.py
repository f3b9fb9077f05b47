"""How does `kubectl apply -k` find the files, for one job and for all?

A case's folder has all that its job needs but claims, so that one command starts it, and one
deletes it without anybody's data; the root has claims and all cases.
Source: Kustomize, "kustomization", `resources` (folders are bases) and `sortOptions`.
"""

import posixpath
from collections.abc import Iterable, Sequence

from broadgauge.manifests.files import ManifestFile

KUSTOMIZATION = "kustomization.yaml"
OF_JOBS = "40-job"


def kustomizations(files: Sequence[ManifestFile]) -> list[ManifestFile]:
    """One a folder, and the root's, which names the folders."""
    names: dict[str, list[str]] = {}
    for file in files:
        folder, name = posixpath.split(file.path)
        names.setdefault(folder, []).append(name)
    return [_root(list(names)), *(_of(folder, names[folder]) for folder in names)]


def _of(folder: str, names: Iterable[str]) -> ManifestFile:
    comment = f"`kubectl apply -k {folder}` makes what this folder has."
    if folder.startswith(OF_JOBS):
        comment = (
            f"`kubectl apply -k {folder}` starts this job, `kubectl delete -k {folder}` removes it."
        )
    return _kustomization(folder, comment, names)


def _root(folders: Sequence[str]) -> ManifestFile:
    num_jobs = sum(folder.startswith(OF_JOBS) for folder in folders)
    comment = "`kubectl apply -k .` applies all of this in the order of the folders' names."
    if num_jobs > 1:
        comment += (
            f"\nIt starts {num_jobs} jobs at once, which share whatever network and nodes they "
            "meet on: what each measures alone is found by applying one folder of 40-job after "
            "another."
        )
    return _kustomization("", comment, folders)


def _kustomization(folder: str, comment: str, resources: Iterable[str]) -> ManifestFile:
    """`fifo`: in the order given, where the default puts kinds that it does not know by name."""
    return ManifestFile(
        path=posixpath.join(folder, KUSTOMIZATION),
        comment=comment,
        objects=(
            {
                "apiVersion": "kustomize.config.k8s.io/v1beta1",
                "kind": "Kustomization",
                "sortOptions": {"order": "fifo"},
                "resources": list(resources),
            },
        ),
    )
