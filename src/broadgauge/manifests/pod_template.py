"""What is a pod of the job? One a node, with one container, whose entrypoint starts torchrun."""

from broadgauge.manifests import attachments, fabric_parts, names, security
from broadgauge.manifests.asked_network import asked_network
from broadgauge.manifests.config_maps import CASE_KEY, PROGRAM_KEY
from broadgauge.manifests.expansion import not_expanded
from broadgauge.manifests.job import PodJob
from broadgauge.manifests.mapped_nodes import MOST_NAMED_NODES, mapped_nodes
from broadgauge.manifests.pod_parts import (
    OF_ANY_USER,
    plain_variables,
    pod_frame,
    secret_variables,
)
from broadgauge.manifests.resources import resources
from broadgauge.manifests.volumes import (
    CASE,
    FILES,
    PROGRAM,
    SCRATCH,
    mounted,
    mounted_for_addresses,
)
from broadgauge.manifests.waiting import prepared_variables, waiting_containers
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.messages.asked_network import network_word
from broadgauge.specs.kubernetes import NO_SIDECAR

FIRST_PORT = 29_500
"""Of the ranks' rendezvous: torchrun's default."""
_NO_MESH = {NO_SIDECAR: "false"}
"""A mesh's proxy would stand between the ranks, and outlive them. Source: Istio, "Installing the
Sidecar"."""


def pod_template(job: PodJob, pod: int = 0) -> Manifest:
    """`metadata` and `spec`, for all kinds of jobs. `pod`: number of the first that it is of."""
    of_networks = attachments.annotations(job, pod)
    return {
        "metadata": {
            "labels": names.job_labels(job),
            "annotations": {**job.settings.annotations, **_NO_MESH, **of_networks},
        },
        "spec": _spec(job),
    }


def _spec(job: PodJob) -> Manifest:
    affinity = _one_a_node(job) if job.num_pods > 1 else {}
    found = pod_frame(
        job,
        affinity=affinity | _on_mapped_nodes(job),
        runtime_class=job.settings.runtime_class,
    )
    all_mounted = mounted(job)
    volumes = {each.volume["name"]: each.volume for each in all_mounted}
    before = fabric_parts.sidecars(job.attachments.fabrics)
    if job.address_map is not None:
        for_addresses = mounted_for_addresses(job)
        volumes |= {each.volume["name"]: each.volume for each in for_addresses}
        before.insert(0, _address_container(job, [each.mount for each in for_addresses]))
    before = waiting_containers(job) + before
    if before:
        found["initContainers"] = before
    mounts = [each.mount for each in all_mounted]
    mounts += fabric_parts.rank_mounts(job.attachments.fabrics)
    found["containers"] = [_container(job, mounts)]
    found["volumes"] = [*volumes.values(), *fabric_parts.host_volumes(job.attachments.fabrics)]
    return found


def _address_container(job: PodJob, mounts: list[Manifest]) -> Manifest:
    """What gives the pod's NICs the addresses of the map (agent/pod/addresses.py)."""
    mapped = [each.name for each in job.attachments.interfaces if each.is_mapped]
    found: Manifest = {"name": "addresses", "image": job.settings.image}
    if job.settings.image_pull_policy is not None:
        found["imagePullPolicy"] = job.settings.image_pull_policy
    node = {"fieldRef": {"fieldPath": "spec.nodeName"}}
    return found | {
        "command": [not_expanded(job.settings.python), f"{PROGRAM}/{PROGRAM_KEY}", "addresses"],
        "env": [
            {"name": "BROADGAUGE_NODE_NAME", "valueFrom": node},
            {"name": "BROADGAUGE_ADDRESS_INTERFACES", "value": not_expanded(",".join(mapped))},
            {"name": "PYTHONUNBUFFERED", "value": "1"},
        ],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
        "securityContext": security.of_address_container(),
        "volumeMounts": mounts,
    }


def _one_a_node(job: PodJob) -> Manifest:
    """Two pods of a job never share a node: its NICs and GPUs are measured."""
    term = {
        "labelSelector": {"matchLabels": {names.EXPERIMENT: job.prefix, names.CASE: job.word}},
        "topologyKey": "kubernetes.io/hostname",
    }
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _on_mapped_nodes(job: PodJob) -> Manifest:
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


def _container(job: PodJob, mounts: list[Manifest]) -> Manifest:
    settings = job.settings
    found: Manifest = {"name": names.container_name(job), "image": settings.image}
    if settings.image_pull_policy is not None:
        found["imagePullPolicy"] = settings.image_pull_policy
    found |= {
        "command": [not_expanded(settings.python), f"{PROGRAM}/{PROGRAM_KEY}", "pod"],
        "args": [not_expanded(word) for word in entrypoint_arguments(job)],
        "env": _variables(job),
        "resources": resources(job),
        "securityContext": security.of_container(job),
        "volumeMounts": mounts,
    }
    return found


def entrypoint_arguments(job: PodJob) -> list[str]:
    """Of `broadgauge.zip pod` (agent/pod/main.py)."""
    working = job.settings.working_folder
    words = [
        *("--nodes", str(job.num_pods)),
        *("--ranks-per-node", str(job.ranks_per_pod)),
        *("--leader", names.leader_address(job)),
        *("--port", str(FIRST_PORT)),
        *("--launches", str(job.launches)),
        *("--folder", f"{SCRATCH}/work" if working is None else working),
    ]
    if job.files:
        words += ["--files", FILES]
    if job.subfolder:
        words += ["--subfolder", job.subfolder]
    network = asked_network(job)
    if network is not None:
        words += ["--network", network_word(network)]
    return [*words, "--", *job.arguments]


OWN_WORKLOAD = (f"{PROGRAM}/{PROGRAM_KEY}", "measure", f"{CASE}/{CASE_KEY}")
"""What torchrun is given where the ranks are ours (probes/without_agent.py)."""


def _variables(job: PodJob) -> list[Manifest]:
    plain = OF_ANY_USER | prepared_variables(job) | dict(job.environment)
    return plain_variables(plain, but=job.secrets) + secret_variables(job.secrets)
