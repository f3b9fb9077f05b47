"""Where are the programs of a control plane, and what is missing here?"""

import shutil
from dataclasses import dataclass
from pathlib import Path

from scripts.control_plane.recipes import (
    PROGRAMS,
    cache_folder,
    manifests_folder_name,
    missing,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """Paths of what `make control-plane` built and Debian's etcd-server brought."""

    etcd: Path
    api_server: Path
    controller_manager: Path
    scheduler: Path
    kubectl: Path
    training_operator: Path
    jobset: Path
    trainer: Path
    manifests: Path
    """Folder of the releases' YAML files: `<name>/<path in its Go module>`."""


def reason_missing() -> str | None:
    """Why there can be no control plane here; None where there can."""
    if etcd_path() is None:
        return "no etcd: apt install etcd-server"
    lacking = missing(cache_folder())
    return f"{cache_folder()} lacks {', '.join(lacking)}: make control-plane" if lacking else None


def find_programs() -> Programs:
    """FileNotFoundError, with the reason, where something is missing."""
    etcd, reason = etcd_path(), reason_missing()
    if etcd is None or reason:
        raise FileNotFoundError(reason)
    cache = cache_folder()
    folders = {program.name: cache / program.folder_name() for program in PROGRAMS}
    kubernetes = folders["kubernetes"]
    return Programs(
        etcd=etcd,
        api_server=kubernetes / "kube-apiserver",
        controller_manager=kubernetes / "kube-controller-manager",
        scheduler=kubernetes / "kube-scheduler",
        kubectl=kubernetes / "kubectl",
        training_operator=folders["training-operator"] / "training-operator",
        jobset=folders["jobset"] / "jobset",
        trainer=folders["trainer"] / "trainer",
        manifests=cache / manifests_folder_name(),
    )


def etcd_path() -> Path | None:
    """Debian's, also for a user whose PATH lacks the system's folders."""
    found = shutil.which("etcd") or shutil.which("etcd", path="/usr/bin:/usr/sbin")
    return Path(found) if found else None
