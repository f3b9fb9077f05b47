"""Which files, volumes and folders does a case need in its pods, and are they there?"""

import posixpath
from collections.abc import Iterable
from pathlib import Path

from broadgauge.manifests.job_parts import is_gpu
from broadgauge.specs.base import did_you_mean
from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.kubernetes.settings import Kubernetes
from broadgauge.specs.kubernetes.storage_places import unwritable_volume


def check_workloads(experiment: Experiment) -> None:
    """Raises InputError: by a mistyped name a volume or a secret would be nowhere."""
    settings, known = experiment.kubernetes, [each.name for each in experiment.workloads]
    volumes = ((f"volumes[{i}]", each.workloads) for i, each in enumerate(settings.volumes))
    secrets = ((f"secrets.{name}", ref.workloads) for name, ref in settings.secrets.items())
    for place, names in (*volumes, *secrets):
        for name in names or ():
            if name not in known:
                raise InputError(
                    f"kubernetes.{place}.workloads: no workload is named `{name}`",
                    hint=did_you_mean(name, known) or f"there are {', '.join(known)}",
                )


def is_fed(settings: Kubernetes, case: Case) -> bool:
    """Do its pods mount the volume that is filled before?"""
    names = {each.name for each in settings.volumes_of(case.workload.name)}
    return settings.prepare is not None and settings.prepare.volume in names


def check_needed(case: Case, needed: Iterable[str], folder: Path) -> None:
    """Raises InputError for a file that would be missed in the pod."""
    for name in needed:
        if not (folder / name).is_file():
            beside = [path.name for path in folder.iterdir()] if folder.is_dir() else []
            near = did_you_mean(name, beside)
            there = "`kubernetes.working_folder`: the folder of an image or volume that has it"
            raise InputError(
                f"workloads.{case.workload.name}: no file `{name}` in {folder}, to be sent",
                hint=there if near is None else f"{near} Or {there}",
            )


def where(settings: Kubernetes, folder: str | None, case: Case) -> tuple[Kubernetes, str]:
    """The settings with a folder of the image that the command names, or the folder below the
    experiment's that it runs in. Raises InputError for one elsewhere."""
    if folder is None:
        return settings, ""
    if folder.startswith("/"):
        known = settings.working_folder or folder
        if settings.files:
            raise InputError(
                f"workloads.{case.workload.name}.working_directory: {folder} is the image's, where "
                "`kubernetes.files` can't be put",
                hint="a path below the experiment's folder, or no `files`",
            )
        return settings.model_copy(update={"working_folder": known}), ""
    subfolder = posixpath.normpath(folder)
    if subfolder.startswith(".."):
        raise InputError(
            f"workloads.{case.workload.name}.working_directory: {folder} is not below the "
            "experiment's folder, and nothing of it gets into a pod",
            hint="a path below it, or an absolute one, of the image or a volume",
        )
    return settings, "" if subfolder == "." else subfolder


def refuse_gpus(resources: Iterable[str], settings: Kubernetes) -> None:
    """Raises InputError: a network's resource would take the place of the ranks' GPUs."""
    for name in resources:
        if name == settings.gpu_resource or is_gpu(name):
            raise InputError(
                f"networks[].kubernetes.resources: {name} are the pods' GPUs",
                hint="the resource that gives the NIC or /dev/infiniband",
            )


def check_storage(settings: Kubernetes, case: Case) -> None:
    """Raises InputError for a storage on a volume to which no pod may write."""
    storage = case.storage
    if storage is None:
        return
    volume = unwritable_volume(storage, settings, case.workload.name)
    if volume is not None:
        raise InputError(
            f"storages.{storage.name}.path: {storage.path} is on the volume {volume.name}, which "
            "pods can't write to, and each phase writes what it reads",
            hint="a claim without `is_read_only`, with `access: ReadWriteMany`",
        )


def files_below(subfolder: str, named: Iterable[str]) -> list[str]:
    """Words that may be files, as the experiment's folder has them."""
    return [posixpath.normpath(posixpath.join(subfolder, word)) for word in named]
