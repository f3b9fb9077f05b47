"""What is a cluster, as far as its API says? Pure: from what was read, or why it could not be.

Sources: Kubernetes API reference, NodeStatus and well-known labels; NVIDIA GPU feature discovery,
"Generated labels"; OVN-Kubernetes, annotation `k8s.ovn.org/host-cidrs`; OpenShift, ClusterVersion.
What is of another shape than there is not known; a node without a name that can be one is none.
"""

import ipaddress
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from broadgauge.platforms.kubernetes.found_definitions import (
    FoundDefinition,
    SriovPool,
    definition_of,
    is_object_name,
    is_resource,
    pool_of,
)
from broadgauge.platforms.kubernetes.json_shapes import (
    JsonMap,
    labels_in,
    mapping,
    mappings,
    text,
    texts,
)
from broadgauge.specs.kubernetes_names import SUBDOMAIN

_COUNT = re.compile(r"([0-9]{1,15})([kM]?)")
_LABEL_KEY = re.compile(rf"({SUBDOMAIN}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?")
_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
HOST_ADDRESSES = ("k8s.ovn.org/host-cidrs", "k8s.ovn.org/host-addresses")
GPU_PRODUCT = "nvidia.com/gpu.product"
_NOT_DEVICES = ("hugepages-", "attachable-volumes-", "requests.", "limits.")
_GPUS = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/", "habana.ai/gaudi")
OPERATORS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "training-operator": ("kubeflow.org", ("training-operator",)),
    "trainer": ("trainer.kubeflow.org", ("kubeflow-trainer-controller-manager",)),
    "jobset": ("jobset.x-k8s.io", ("jobset-controller-manager",)),
    "kueue": ("kueue.x-k8s.io", ("kueue-controller-manager",)),
    "volcano": ("scheduling.volcano.sh", ("volcano-controllers", "volcano-scheduler")),
    "multus": ("k8s.cni.cncf.io", ()),
    "whereabouts": ("whereabouts.cni.cncf.io", ()),
    "sriov-network-operator": ("sriovnetwork.openshift.io", ("sriov-network-operator",)),
    "network-operator": (
        "mellanox.com",
        ("nvidia-network-operator-controller-manager", "network-operator"),
    ),
    "gpu-operator": ("nvidia.com", ("gpu-operator",)),
}
"""By the group of their kinds, and the Deployments whose image bears their version."""


@dataclass(frozen=True, slots=True)
class NotKnown:
    """Could not be read, and why: it may not be, or nothing of that kind is there."""

    why: str
    may_be_there: bool = False
    """It is forbidden, or the answer is not understood."""


Answers = Mapping[str, JsonMap | NotKnown]
"""What was read: `version`, `groups`, `nodes`, `attachments`, `deployments`, `openshift`,
`policies`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNode:
    """One node that pods may be placed on."""

    name: str
    is_usable: bool
    """Ready, and not closed to pods."""
    gpu_resource: str | None
    num_gpus: int
    devices: tuple[tuple[str, int], ...]
    """Other extended resources and how many: `rdma/…`, `openshift.io/…`."""
    address: str | None
    further_addresses: tuple[str, ...]
    """Of its other NICs, as the node's status or OVN-Kubernetes tells them; no NIC is named."""
    instance_type: str | None
    zone: str | None
    gpu_product: str | None
    driver: str | None
    taints: tuple[str, ...]
    """Keys of those that keep pods away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """All of it."""

    version: str | NotKnown
    openshift: str | NotKnown
    operators: Mapping[str, str | None] | NotKnown
    """Version by name, of those that are there; None: unknown."""
    nodes: tuple[ClusterNode, ...] | NotKnown
    definitions: tuple[FoundDefinition, ...] | NotKnown
    pools: tuple[SriovPool, ...] | NotKnown


def inventory_of(answers: Answers) -> Inventory:
    """From the API's answers as they came."""
    version, openshift = answers["version"], answers["openshift"]
    return Inventory(
        version=version if isinstance(version, NotKnown) else _version(version),
        openshift=openshift if isinstance(openshift, NotKnown) else _openshift(openshift),
        operators=_operators(answers["groups"], answers["deployments"]),
        nodes=_listed(answers["nodes"], _node),
        definitions=_listed(answers["attachments"], definition_of),
        pools=_listed(answers["policies"], pool_of),
    )


def _listed(answer: JsonMap | NotKnown, parse: Any) -> Any:
    if isinstance(answer, NotKnown):
        return answer
    return tuple(
        each for item in mappings(answer.get("items")) if (each := parse(item)) is not None
    )


def _version(told: JsonMap) -> str | NotKnown:
    return text(told.get("gitVersion")) or NotKnown("what answers names no version")


def _openshift(version: JsonMap) -> str | NotKnown:
    found = text(mapping(mapping(version.get("status")).get("desired")).get("version"))
    return found or NotKnown("its ClusterVersion names no version")


def _operators(
    groups: JsonMap | NotKnown, deployments: JsonMap | NotKnown
) -> Mapping[str, str | None] | NotKnown:
    if isinstance(groups, NotKnown):
        return groups
    served = group_names(groups)
    found = [] if isinstance(deployments, NotKnown) else mappings(deployments.get("items"))
    versions = {
        text(mapping(each.get("metadata")).get("name")): _version_of(each) for each in found
    }
    return {
        name: next((versions[each] for each in names if versions.get(each)), None)
        for name, (group, names) in OPERATORS.items()
        if group in served
    }


def group_names(groups: JsonMap) -> set[str]:
    """Of the API's groups."""
    return {text(each.get("name")) or "" for each in mappings(groups.get("groups"))}


def _version_of(deployment: JsonMap) -> str | None:
    """By its label, else by its image's tag; an image by digest has none."""
    labels = labels_in(deployment)
    if labels.get("app.kubernetes.io/version"):
        return labels["app.kubernetes.io/version"]
    pods = mapping(mapping(mapping(deployment.get("spec")).get("template")).get("spec"))
    images = [text(each.get("image")) or "" for each in mappings(pods.get("containers"))]
    image = images[0].partition("@")[0] if images else ""
    _, colon, tag = image.rpartition("/")[2].partition(":")
    return tag if colon else None


def _node(node: JsonMap) -> ClusterNode | None:
    metadata, spec, status = (mapping(node.get(key)) for key in ("metadata", "spec", "status"))
    if not is_object_name(metadata.get("name")):
        return None
    labels, allocatable = labels_in(node), _resources(status)
    gpus = sorted((key, count) for key, count in allocatable if key.startswith(_GPUS))
    own = [
        address
        for each in mappings(status.get("addresses"))
        if each.get("type") == "InternalIP" and (address := text(each.get("address")))
    ]
    product = labels.get(GPU_PRODUCT, "")
    return ClusterNode(
        name=metadata["name"],
        is_usable=_is_ready(status) and not spec.get("unschedulable"),
        gpu_resource=next((key for key, count in gpus if count), gpus[0][0] if gpus else None),
        num_gpus=max((count for _, count in gpus), default=0),
        devices=tuple(
            (key, count) for key, count in allocatable if count and not key.startswith(_GPUS)
        ),
        address=own[0] if own else None,
        further_addresses=tuple(_further(own, texts(metadata.get("annotations")))),
        instance_type=labels.get("node.kubernetes.io/instance-type"),
        zone=labels.get("topology.kubernetes.io/zone"),
        gpu_product=product if _LABEL_VALUE.fullmatch(product) else None,
        driver=_driver(labels),
        taints=tuple(_taints(spec)),
    )


def _taints(spec: JsonMap) -> Iterator[str]:
    """Keys of those that keep pods away."""
    for each in mappings(spec.get("taints")):
        key = text(each.get("key")) or ""
        if each.get("effect") != "PreferNoSchedule" and _LABEL_KEY.fullmatch(key):
            yield key


def _is_ready(status: JsonMap) -> bool:
    """A node that nobody judges is taken for ready."""
    found = [each for each in mappings(status.get("conditions")) if each.get("type") == "Ready"]
    return all(each.get("status") == "True" for each in found)


def _resources(status: JsonMap) -> list[tuple[str, int]]:
    """Extended resources and how many can be had, by name."""
    allocatable = mapping(status.get("allocatable"))
    return [
        (key, _count(allocatable[key]))
        for key in sorted(allocatable)
        if is_resource(key) and not key.startswith(_NOT_DEVICES)
    ]


def _count(quantity: object) -> int:
    """Of an extended resource: whole; `1k` where there are many of a shared one."""
    found = _COUNT.fullmatch(str(quantity)) if isinstance(quantity, (str, int)) else None
    return 0 if found is None else int(found[1]) * {"": 1, "k": 10**3, "M": 10**6}[found[2]]


def _further(own: list[str], annotations: Mapping[str, str]) -> Iterator[str]:
    """Addresses of IPv4 beside the first, each once."""
    told = list(own)
    for key in HOST_ADDRESSES:
        try:
            listed = json.loads(annotations.get(key, "[]"))
        except (ValueError, RecursionError):
            continue
        if isinstance(listed, list):
            told += [each for each in listed if isinstance(each, str)]
    seen = {own[0].partition("/")[0]} if own else set[str]()
    for given in told:
        try:
            address = ipaddress.IPv4Interface(given)
        except ValueError:
            continue
        if str(address.ip) not in seen and not address.ip.is_link_local:
            seen.add(str(address.ip))
            yield given


def _driver(labels: Mapping[str, str]) -> str | None:
    whole = labels.get("nvidia.com/cuda.driver-version.full")
    if whole:
        return whole
    parts = [labels.get(f"nvidia.com/cuda.driver.{part}") for part in ("major", "minor", "rev")]
    return ".".join(each for each in parts if each) or None
