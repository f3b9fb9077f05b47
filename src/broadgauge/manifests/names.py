"""By which names and labels is known what is ours? All that we make bears them, pods too."""

import re
from typing import Protocol, assert_never

from broadgauge.manifests.job import JobPods
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.specs.kubernetes.settings import MANAGED_BY, OUR_DOMAIN

MANAGER = "broadgauge"
EXPERIMENT = f"{OUR_DOMAIN}/experiment"
"""All objects of one experiment: what is looked at and deleted together."""
CASE = f"{OUR_DOMAIN}/case"
"""All objects of one job."""
RUN = f"{OUR_DOMAIN}/run"
"""All objects and pods of one run: what a tool follows, and deletes when it is over."""
JOB = f"{OUR_DOMAIN}/job"
"""All objects of one job of a run: one that was lost has a successor."""
OWNER = f"{OUR_DOMAIN}/owner"
"""Annotation of a run's objects: who runs it, `user@host`."""
REPLICATED_JOB = "node"
"""Of a TrainJob's pods; from Trainer 2.4 on such names have 20 characters at most."""
MOST_NAME_CHARACTERS = 52
"""Of a job: behind it operators write `-node-0-255` and `-worker-255`, and the whole must be a DNS
label of 63 characters. Source: Kubernetes, "Object Names and IDs", RFC 1123 label names; names of a
TrainJob's and a PyTorchJob's pods."""

MOST_LABEL_CHARACTERS = 63
"""Source: Kubernetes, "Labels and Selectors"."""


class Named(Protocol):
    """A job as whoever renders, makes or follows it knows it."""

    @property
    def name(self) -> str:
        """Of the object; what belongs to it begins so."""
        ...


def word_of(text: str) -> str:
    """A part of a DNS label: lower-case letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def job_labels(job: JobPods) -> dict[str, str]:
    """On every object of a job; ours win."""
    return {**experiment_labels(job), **job.marks}


def shared_labels(job: JobPods) -> dict[str, str]:
    """On networks and maps, which cases that are rendered have together, and each run its own."""
    return {**experiment_labels(job), **job.shared_marks}


def experiment_labels(job: JobPods) -> dict[str, str]:
    """On what outlives all jobs: volumes, and what is fetched onto them."""
    return {**job.settings.labels, MANAGED_BY: MANAGER, EXPERIMENT: job.experiment}


def pods_selector(job: JobPods) -> dict[str, str]:
    """Labels that its pods have, and no others."""
    return {EXPERIMENT: job.experiment, **job.marks}


def metadata(job: JobPods, name: str, labels: dict[str, str]) -> Manifest:
    """Of an object."""
    space = {} if (given := job.settings.namespace) is None else {"namespace": given}
    return {"name": name, **space, "labels": labels}


def program_name(job: Named) -> str:
    """ConfigMap of what runs in its pods."""
    return f"{job.name}-program"


def orders_name(job: Named) -> str:
    """ConfigMap of what the leader of a run's pods is told."""
    return f"{job.name}-orders"


def secrets_name(job: Named) -> str:
    """Secret of a run's token, and of variables whose values stand nowhere else."""
    return secrets_name_for(job.name)


def secrets_name_for(job_name: str) -> str:
    """The same, for who knows a job by its label alone."""
    return f"{job_name}-secrets"


def case_name_of(job: JobPods) -> str:
    """ConfigMap of what this job is told."""
    return f"{job.name}-case"


def files_name(job: JobPods) -> str:
    """ConfigMap of the user's files."""
    return f"{job.name}-files"


def address_map_name(job: JobPods) -> str:
    """ConfigMap of the address map, which all jobs share."""
    return f"{job.prefix}-address-map"


def topology_name(job: JobPods) -> str:
    """ConfigMap of NCCL's topology file, which all jobs share."""
    return f"{job.prefix}-topology"


def container_name(job: JobPods) -> str:
    """Of the ranks. Each operator finds it by its name.

    Source: Kubeflow Trainer 2.3, pkg/constants, Node; training-operator 1.9, kubeflow.org/v1
    PyTorchJobDefaultContainerName.
    """
    return "node" if job.kind == "trainjob" else "pytorch"


def leader_address(job: JobPods) -> str:
    """DNS name of the first pod, from inside the namespace; one pod is its own.

    Source: Kubernetes, "Job with Pod-to-Pod Communication": an indexed Job's pod has the hostname
    `<job>-<index>`, and a headless Service of the subdomain's name makes it a DNS name; JobSet
    0.12, "Pod DNS hostnames": `<jobset>-<job>-<job index>-<pod index>.<subdomain>`;
    training-operator 1.9: a Service for each pod.
    """
    if job.num_pods == 1:
        return "127.0.0.1"
    match job.kind:
        case "job":
            return f"{job.name}-0.{job.name}"
        case "pytorchjob":
            return f"{job.name}-master-0"
        case "trainjob":
            return f"{job.name}-{REPLICATED_JOB}-0-0.{job.name}"
        case _:
            assert_never(job.kind)
