"""How does `kubectl apply -k` find the files, for one job and for all?

A case's folder brings what all share with it, so that one command starts one job; the root has all
of them. Source: Kustomize, "kustomization", `resources` (folders are bases, and files must stand
below the kustomization's own) and `sortOptions`.
"""

import posixpath
from collections.abc import Iterable, Sequence

from broadgauge.manifests.files import ManifestFile

KUSTOMIZATION = "kustomization.yaml"


def kustomizations(files: Sequence[ManifestFile]) -> list[ManifestFile]:
    """One a folder, and the root's, which has every file itself: a base is taken once only."""
    folders = dict.fromkeys(posixpath.dirname(file.path) for file in files)
    shared = [folder for folder in folders if not _is_of_a_job(folder)]
    found = [_root(files)]
    for folder in folders:
        own = [posixpath.basename(f.path) for f in files if posixpath.dirname(f.path) == folder]
        bases = [posixpath.relpath(each, folder) for each in shared] if folder not in shared else []
        comment = (
            f"`kubectl apply -k {folder}` starts this job, and makes what it needs."
            if bases
            else f"What the folder {folder} has, for those that name it as a base."
        )
        found.append(_kustomization(folder, comment, [*bases, *own]))
    return found


def _is_of_a_job(folder: str) -> bool:
    return folder.startswith("40-job/")


def _root(files: Sequence[ManifestFile]) -> ManifestFile:
    num_jobs = len({posixpath.dirname(f.path) for f in files if _is_of_a_job(f.path)})
    comment = "`kubectl apply -k .` applies all of this in the order of the folders' names."
    if num_jobs > 1:
        comment += (
            f"\nIt starts {num_jobs} jobs at once, which share whatever network and nodes they "
            "meet on: what each measures alone is found by applying one folder of 40-job after "
            "another."
        )
    return _kustomization("", comment, [file.path for file in files])


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
