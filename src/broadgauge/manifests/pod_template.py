"""What is a pod of the job? One a node, with the container of its ranks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from broadgauge.manifests import attachments, fabric_parts, names, security
from broadgauge.manifests.config_maps import PROGRAM_KEY
from broadgauge.manifests.expansion import not_expanded
from broadgauge.manifests.job import JobPods
from broadgauge.manifests.mapped_nodes import MOST_NAMED_NODES, mapped_nodes
from broadgauge.manifests.pod_parts import pod_frame
from broadgauge.manifests.resources import resources
from broadgauge.manifests.volumes import PROGRAM, mounted_for_addresses
from broadgauge.manifests.waiting import waiting_containers
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.specs.kubernetes.settings import NO_SIDECAR

_NO_MESH = {NO_SIDECAR: "false"}
"""A mesh's proxy would stand between the ranks, and outlive them. Source: Istio, "Installing the
Sidecar"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodContents:
    """What runs in a pod, beside what prepares it."""

    containers: tuple[Manifest, ...]
    """The ranks' first."""
    volumes: tuple[Manifest, ...]
    """That they mount, without those of the fabrics."""
    grace_s: int | None = None
    """From being told to end to being killed; None: Kubernetes' own 30 s."""


SAYS_WHY = {"terminationMessagePolicy": "FallbackToLogsOnError"}
"""Of our own programs: the last lines of one that fails stand in its pod's status. Source:
Kubernetes, "Determine the Reason for Pod Failure". Of the ranks, what they print stays in the log.
"""
ContentsOf = Callable[[int], PodContents]
"""Of the pods whose first has this number in the job: not every kind of job has one template."""


def pod_template(job: JobPods, contents_of: ContentsOf, pod: int = 0) -> Manifest:
    """`metadata` and `spec`, for all kinds of jobs. `pod`: number of the first that it is of."""
    of_networks = attachments.annotations(job, pod)
    return {
        "metadata": {
            "labels": names.job_labels(job),
            "annotations": {**job.settings.annotations, **_NO_MESH, **of_networks},
        },
        "spec": _spec(job, contents_of(pod)),
    }


def _spec(job: JobPods, contents: PodContents) -> Manifest:
    affinity = _one_a_node(job) if job.num_pods > 1 else {}
    found = pod_frame(
        job,
        affinity=affinity | _on_mapped_nodes(job),
        runtime_class=job.settings.runtime_class,
    )
    volumes = {volume["name"]: volume for volume in contents.volumes}
    before = fabric_parts.sidecars(job.attachments.fabrics)
    if job.address_map is not None:
        for_addresses = mounted_for_addresses(job)
        volumes |= {each.volume["name"]: each.volume for each in for_addresses}
        before.insert(0, _address_container(job, [each.mount for each in for_addresses]))
    before = waiting_containers(job) + before
    if before:
        found["initContainers"] = before
    if contents.grace_s is not None:
        found["terminationGracePeriodSeconds"] = contents.grace_s
    found["containers"] = list(contents.containers)
    found["volumes"] = [*volumes.values(), *fabric_parts.host_volumes(job.attachments.fabrics)]
    return found


def _address_container(job: JobPods, mounts: list[Manifest]) -> Manifest:
    """What gives the pod's NICs the addresses of the map (agent/pod/addresses.py)."""
    mapped = [each.name for each in job.attachments.interfaces if each.is_mapped]
    node = {"fieldRef": {"fieldPath": "spec.nodeName"}}
    return container(job, "addresses", "addresses") | {
        "env": [
            {"name": "BROADGAUGE_NODE_NAME", "valueFrom": node},
            {"name": "BROADGAUGE_ADDRESS_INTERFACES", "value": not_expanded(",".join(mapped))},
            {"name": "PYTHONUNBUFFERED", "value": "1"},
        ],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
        "securityContext": security.of_address_container(),
        "volumeMounts": mounts,
    }


def _one_a_node(job: JobPods) -> Manifest:
    """Two pods of a job never share a node: its NICs and GPUs are measured."""
    term = {
        "labelSelector": {"matchLabels": names.pods_selector(job)},
        "topologyKey": "kubernetes.io/hostname",
    }
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _on_mapped_nodes(job: JobPods) -> Manifest:
    """A node that the address map does not know has no address for the pod.

    Source: Kubernetes, NodeSelectorTerm, `matchFields`: `metadata.name`, one value each.
    """
    nodes = mapped_nodes(job)
    if not nodes or len(nodes) > MOST_NAMED_NODES:
        return {}
    terms = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        for node in nodes
    ]
    required = {"nodeSelectorTerms": terms}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def container(job: JobPods, name: str, program: str) -> Manifest:
    """The beginning of one that runs a program of our zip file, in the user's image."""
    settings = job.settings
    found: Manifest = {"name": name, "image": settings.image}
    if settings.image_pull_policy is not None:
        found["imagePullPolicy"] = settings.image_pull_policy
    found["command"] = [not_expanded(settings.python), f"{PROGRAM}/{PROGRAM_KEY}", program]
    return found


def rank_container(
    job: JobPods,
    program: str,
    arguments: Sequence[str],
    variables: Sequence[Manifest],
    mounts: Sequence[Manifest],
) -> Manifest:
    """That of the ranks, which holds the pod's GPUs and adapters. `arguments`: as the container
    takes them."""
    return container(job, names.container_name(job), program) | {
        "args": list(arguments),
        "env": list(variables),
        "resources": resources(job),
        "securityContext": security.of_container(job),
        "volumeMounts": list(mounts),
    }
