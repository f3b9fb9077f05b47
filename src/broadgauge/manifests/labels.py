"""By which labels and names is known what is ours? All that we make bears them, pods too."""

import re
from typing import Literal

JobKind = Literal["pytorchjob", "trainjob", "jobset", "job"]
"""`auto` is decided before anything is rendered."""

MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = "broadgauge"
RUN = "broadgauge.dev/run"
JOB = "broadgauge.dev/job"
CLAIM_OF = "broadgauge.dev/experiment"
"""On claims and on what fetches into them: they outlive runs, which are deleted by `RUN`."""
OWNER = "broadgauge.dev/owner"
"""An annotation: who runs it, `user@host`."""
APPLIED_BY_HAND = "applied-by-hand"
"""As owner: `render` wrote it, whoever applied it deletes it."""
TOKEN_VARIABLE = "BROADGAUGE_TOKEN"
MOST_LABEL_CHARACTERS = 63


def labels_of(run: str, job: str, of_user: dict[str, str]) -> dict[str, str]:
    """On every object of a run; ours win."""
    return {**of_user, MANAGED_BY: MANAGER, RUN: run, JOB: job}


def lasting_labels(experiment: str, of_user: dict[str, str]) -> dict[str, str]:
    """On what stays when a run is deleted."""
    return {**of_user, MANAGED_BY: MANAGER, CLAIM_OF: job_word(experiment, MOST_LABEL_CHARACTERS)}


def container_name(kind: JobKind) -> str:
    """Of the ranks' container. Each operator finds it by its name.

    Source: training-operator 1.9, kubeflow.org/v1 PyTorchJobDefaultContainerName; trainer 2.1,
    pkg/constants, Node.
    """
    return "node" if kind == "trainjob" else "pytorch"


def leader_address(kind: JobKind, name: str) -> str:
    """DNS name of the first pod, from inside the namespace.

    Source: training-operator 1.9 (a headless Service for each replica); JobSet 0.10, "pod DNS
    hostnames" `<jobset>-<job>-<index>-<pod>.<subdomain>`; Kubernetes, "Job with Pod-to-Pod
    Communication".
    """
    match kind:
        case "pytorchjob":
            return f"{name}-master-0"
        case "trainjob" | "jobset":
            return f"{name}-node-0-0.{name}"
        case "job":
            return f"{name}-0.{name}"


def job_word(text: str, most_characters: int) -> str:
    """A DNS label made of an experiment's name. It begins with a letter, as names of Services must.

    Source: Kubernetes, "Object Names and IDs", RFC 1035 label names.
    """
    word = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    named = word if word[:1].isalpha() else f"run-{word}"
    return named[:most_characters].strip("-")


def program_name(name: str) -> str:
    """ConfigMap of what runs in pods."""
    return f"{name}-program"


def orders_name(name: str) -> str:
    """ConfigMap of what the leader is told."""
    return f"{name}-orders"


def files_name(name: str) -> str:
    """ConfigMap of the user's files."""
    return f"{name}-files"


def addresses_name(name: str) -> str:
    """ConfigMap of the address map."""
    return f"{name}-addresses"


def secrets_name(name: str) -> str:
    """Secret of the run's token, and of variables whose values stand nowhere else."""
    return f"{name}-secrets"
