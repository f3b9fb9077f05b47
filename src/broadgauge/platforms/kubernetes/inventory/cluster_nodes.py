"""What is a node of a cluster, as far as its API says? A node without a name that can be one is
none, and what is of another shape than there is not known.

Sources: Kubernetes API reference, NodeStatus; "Well-Known Labels, Annotations and Taints"; NVIDIA
GPU feature discovery, "Generated labels"; OVN-Kubernetes, annotation `k8s.ovn.org/host-cidrs`.
"""

import ipaddress
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from broadgauge.manifests.job_parts import is_gpu
from broadgauge.manifests.patch_operations import amount
from broadgauge.platforms.kubernetes.cluster_facts import INSTANCE_TYPE, ZONE, gpu_driver
from broadgauge.platforms.kubernetes.json_shapes import (
    JsonMap,
    labels_in,
    mapping,
    mappings,
    text,
    texts,
)
from broadgauge.specs.kubernetes.names import (
    LabelKey,
    LabelValue,
    ObjectName,
    ResourceName,
    is_name,
)

GPU_PRODUCT = "nvidia.com/gpu.product"
_REPLICAS, _SHARING = "nvidia.com/gpu.replicas", "nvidia.com/gpu.sharing-strategy"
_IN_PARTS = ("-SHARED", "-MIG-")
"""In a product's name. Source: NVIDIA device plugin, "Shared Access to GPUs", "MIG"."""
_GKE_GPU = "cloud.google.com/gke-accelerator"
_ARCH, _OS = "kubernetes.io/arch", "kubernetes.io/os"
KINDS_OF_GPU = (GPU_PRODUCT, _GKE_GPU, INSTANCE_TYPE)
"""Labels of which each tells it; the first that there is says it best."""
_NO_TYPE = ("k3s", "rke2")
"""Instance types that these give to all of their nodes."""
SYSTEM_LABELS = (_ARCH, _OS)
KIND_LABELS = (*KINDS_OF_GPU, *SYSTEM_LABELS)
_GPU_MEMORY_MIB = "nvidia.com/gpu.memory"
_GPUS = ("nvidia.com/gpu", "amd.com/gpu")
"""Whole ones, on which torch's `cuda` computes."""
_NOT_FOR_US = (
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "ToBeDeletedByClusterAutoscaler",
    "karpenter.sh/",
    "cloud.google.com/impending-node-termination",
    "aws-node-termination-handler/",
    "eks.amazonaws.com/compute-type",
    "virtual-kubelet.io/",
)
"""Taints of a node that something is wrong with, that somebody closed, that is about to go, or
that is none: of Kubernetes, cluster autoscaler, Karpenter, GKE, EKS (Fargate), virtual kubelet."""
_WHOLE = re.compile(r"[0-9]{1,9}")
_HOST_ADDRESSES = ("k8s.ovn.org/host-cidrs", "k8s.ovn.org/host-addresses")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNode:
    """One node that pods may be placed on."""

    name: str
    is_usable: bool
    """Ready, and not closed to pods."""
    gpu_resource: str | None
    num_gpus: int
    """One that several pods may have at once is one."""
    is_gpu_shared: bool
    """May they be parts of one, or other pods' as well?"""
    kinds: tuple[tuple[str, str], ...]
    """Those of KIND_LABELS that it has."""
    gpu_memory_bytes: int | None
    """Of each GPU."""
    driver: str | None
    devices: tuple[tuple[str, int], ...]
    """Other extended resources and how many: `rdma/…`, `openshift.io/…`."""
    further_addresses: tuple[str, ...]
    """Of its other NICs, as the node's status or OVN-Kubernetes tells them; no NIC is named."""
    instance_type: str | None
    zone: str | None
    taints: tuple[str, ...]
    """Keys of those that keep pods away."""

    @property
    def gpu_kind(self) -> str | None:
        """None: no label tells it."""
        found = dict(self.kinds)
        return next((found[label] for label in KINDS_OF_GPU if label in found), None)

    @property
    def gpu_product(self) -> str | None:
        """By its name; the instance type is none."""
        found = dict(self.kinds)
        return found.get(GPU_PRODUCT) or found.get(_GKE_GPU)

    @property
    def arch(self) -> str | None:
        return dict(self.kinds).get(_ARCH)

    @property
    def other_system(self) -> str | None:
        """None: Linux, or it is not told."""
        system = dict(self.kinds).get(_OS, "linux")
        return None if system == "linux" else system

    @property
    def other_gpus(self) -> tuple[str, ...]:
        """Resources by which GPUs are asked for that are none of whole ones."""
        return tuple(key for key, _ in self.devices if is_gpu(key))

    @property
    def foreign_taints(self) -> tuple[str, ...]:
        """But for that which says that it has GPUs."""
        return tuple(each for each in self.taints if each != self.gpu_resource)


def node_of(node: JsonMap) -> ClusterNode | None:
    """None: it has no name that can be one."""
    metadata, spec, status = (mapping(node.get(key)) for key in ("metadata", "spec", "status"))
    name = metadata.get("name")
    if not isinstance(name, str) or not is_name(name, ObjectName):
        return None
    labels, allocatable = labels_in(node), dict(_resources(status))
    gpus = next((key for key in _GPUS if allocatable.get(key)), None)
    taints = tuple(_taints(spec))
    is_closed = any(each.startswith(_NOT_FOR_US) for each in taints)
    return ClusterNode(
        name=name,
        is_usable=_is_ready(status) and not spec.get("unschedulable") and not is_closed,
        gpu_resource=gpus,
        num_gpus=0 if gpus is None else max(allocatable[gpus] // _replicas(labels), 1),
        is_gpu_shared=_is_shared(labels),
        kinds=tuple(
            (label, value)
            for label in KIND_LABELS
            if (value := labels.get(label)) and is_name(value, LabelValue) and value not in _NO_TYPE
        ),
        gpu_memory_bytes=_memory_bytes(labels),
        driver=gpu_driver(labels),
        devices=tuple(
            (key, count) for key, count in allocatable.items() if count and key not in _GPUS
        ),
        further_addresses=tuple(_further(status, texts(metadata.get("annotations")))),
        instance_type=labels.get(INSTANCE_TYPE),
        zone=labels.get(ZONE),
        taints=taints,
    )


def with_own_addresses(nodes: Sequence[ClusterNode]) -> tuple[ClusterNode, ...]:
    """Without those that several nodes have: a bridge's inside of each, say."""
    found = Counter(_ip(address) for node in nodes for address in node.further_addresses)
    return tuple(
        replace(
            node,
            further_addresses=tuple(
                each for each in node.further_addresses if found[_ip(each)] == 1
            ),
        )
        for node in nodes
    )


def _ip(address: str) -> str:
    return address.partition("/")[0]


def _taints(spec: JsonMap) -> Iterator[str]:
    """Keys of those that keep pods away."""
    for each in mappings(spec.get("taints")):
        key = text(each.get("key")) or ""
        if each.get("effect") != "PreferNoSchedule" and is_name(key, LabelKey):
            yield key


def _is_ready(status: JsonMap) -> bool:
    """A node that nobody judges is taken for ready."""
    found = [each for each in mappings(status.get("conditions")) if each.get("type") == "Ready"]
    return all(each.get("status") == "True" for each in found)


def _resources(status: JsonMap) -> Iterator[tuple[str, int]]:
    """Extended resources and how many can be had, by name."""
    allocatable = mapping(status.get("allocatable"))
    for key in sorted(allocatable):
        if is_name(key, ResourceName):
            yield key, int(amount(str(allocatable[key])) or 0)


def _replicas(labels: Mapping[str, str]) -> int:
    """As how many each GPU is offered."""
    told = labels.get(_REPLICAS, "")
    return max(int(told), 1) if _WHOLE.fullmatch(told) else 1


def _is_shared(labels: Mapping[str, str]) -> bool:
    is_in_parts = any(each in labels.get(GPU_PRODUCT, "") for each in _IN_PARTS)
    return is_in_parts or _replicas(labels) > 1 or labels.get(_SHARING, "none") != "none"


def _memory_bytes(labels: Mapping[str, str]) -> int | None:
    told = labels.get(_GPU_MEMORY_MIB, "")
    return int(told) * 2**20 if _WHOLE.fullmatch(told) else None


def _further(status: JsonMap, annotations: Mapping[str, str]) -> Iterator[str]:
    """Addresses of IPv4 beside the first of the status, each once, with a length where it is told;
    without that one the node's own can't be told from them.

    A /32 where the node's own address has a longer subnet is a service's, which the node holds for
    now, as keepalived gives it.
    """
    own = [
        address
        for each in mappings(status.get("addresses"))
        if each.get("type") == "InternalIP" and (address := text(each.get("address")))
    ]
    own = [each for each in own if _is_ipv4(each)]
    told = [*own, *(each for key in _HOST_ADDRESSES for each in _listed(annotations.get(key)))]
    if not own:
        return
    first = _ip(own[0])
    is_in_subnet = any(each.startswith(f"{first}/") and not _is_alone(each) for each in told)
    seen = {first}
    for given in told:
        try:
            found = ipaddress.IPv4Interface(given)
        except ValueError:
            continue
        is_other = str(found.ip) not in seen and not found.ip.is_link_local
        if is_other and not (is_in_subnet and _is_alone(given)):
            seen.add(str(found.ip))
            yield given


def _is_ipv4(address: str) -> bool:
    try:
        ipaddress.IPv4Interface(address)
    except ValueError:
        return False
    return True


def _is_alone(address: str) -> bool:
    return address.endswith("/32")


def _listed(told: str | None) -> list[str]:
    """Of a list in JSON its texts; empty where it is none."""
    try:
        found = json.loads(told or "[]")
    except (ValueError, RecursionError):
        return []
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []
