"""What do a NetworkAttachmentDefinition and an SR-IOV policy say? Whoever wrote them, and whatever.

A definition that can't be understood has its `trouble` in words, and is no network to try.
Sources: Network Plumbing Working Group, "Kubernetes Network Custom Resource Definition De-facto
Standard" 1.3; CNI specification 1.1, "Configuration format"; SR-IOV network operator,
SriovNetworkNodePolicy.
"""

import json
import re
from dataclasses import dataclass

from broadgauge.manifests.attachments import RESOURCE_NAME
from broadgauge.manifests.job_parts import is_gpu
from broadgauge.platforms.kubernetes.json_shapes import JsonMap, mapping, mappings, text, whole
from broadgauge.specs.kubernetes.names import LabelName, ObjectName, ResourceName, is_name
from broadgauge.specs.networks.attachment_rules import MODES
from broadgauge.specs.networks.pod_networks import DeviceName
from broadgauge.wording.printable import printable

MULTUS_SHARED = "default"
"""Pods of every namespace may use its definitions, where Multus keeps namespaces apart.

Source: Multus, "Configuration reference", `namespaceIsolation` and `globalNamespaces`."""
OPENSHIFT_SHARED = ("openshift-cnv", "openshift-multus", "openshift-sriov-network-operator")
"""Whose definitions OpenShift's Multus shares as well. Source: cluster-network-operator, its Multus
configuration, `globalNamespaces`."""
_PLUGIN = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_.]{0,62}")
"""A program's name."""
_OVN = "ovn-k8s-cni-overlay"
"""Gives addresses itself where it has `subnets`. Source: OVN-Kubernetes, "Multi-homing"."""
_VLANS = ("vlan", "vlanId", "vlanID")
"""Source: sriov-cni and the plugin bridge; the plugin vlan; OVN-Kubernetes."""
_OVER_VLAN = re.compile(r"\.([0-9]{1,4})$")
_MOST_SHOWN = 60
_OPERATORS_PREFIX = "openshift.io"
"""One that the SR-IOV operator's resources may have. Source: its RESOURCE_PREFIX; NVIDIA's network
operator sets `nvidia.com`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundDefinition:
    """A NetworkAttachmentDefinition."""

    namespace: str
    name: str
    plugin: str | None
    """Its CNI plugin, the first of a chain; None: its file is on the nodes, or `trouble`."""
    mode: str | None
    """Of its plugin."""
    vlan: str | None
    """Its number, where it is told."""
    device: str | None
    """Of the node."""
    ipam: str | None
    """Who gives addresses; None: nobody."""
    is_pod_network: bool
    """It takes the place of the pod network, in its namespace. Source: OVN-Kubernetes, "User
    Defined Networks", `role`."""
    resource: str | None
    is_rdma: bool
    """It says so itself (`isRdma`), or its chain has the plugin `rdma`."""
    trouble: str | None
    """What is wrong with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SriovPool:
    """What a SriovNetworkNodePolicy gives to a resource."""

    resource_name: str
    """Without the prefix, which the policy does not say."""
    is_rdma: bool
    is_infiniband: bool


def definition_of(item: JsonMap) -> FoundDefinition:
    """Of an object with metadata."""
    metadata = mapping(item.get("metadata"))
    name, namespace = metadata.get("name"), metadata.get("namespace", "default")
    config, trouble = _config(mapping(item.get("spec")).get("config"))
    plugins = mappings(config["plugins"]) if isinstance(config.get("plugins"), list) else [config]
    first = plugins[0] if plugins else {}
    plugin, ipam = first.get("type"), mapping(first.get("ipam")).get("type")
    if plugin == _OVN and text(first.get("subnets")):
        ipam = ipam or _OVN
    resource = mapping(metadata.get("annotations")).get(RESOURCE_NAME)
    device = first.get("device") or first.get("master") or first.get("bridge")
    checks = (
        (is_name(name, ObjectName), name, "an object"),
        (is_name(namespace, LabelName), namespace, "a namespace"),
        (plugin is None or _is_plugin(plugin), plugin, "a plugin"),
        (ipam is None or _is_plugin(ipam), ipam, "a plugin for addresses"),
        (device is None or is_name(device, DeviceName), device, "a device"),
        (resource is None or _is_nics(resource), resource, "a NIC's resource"),
    )
    for is_right, value, what in checks:
        if not is_right:
            trouble = trouble or f"`{shown(value)}` is no name of {what}"
    is_clear = trouble is None
    return FoundDefinition(
        namespace=str(namespace) if is_name(namespace, LabelName) else shown(namespace),
        name=str(name) if is_name(name, ObjectName) else shown(name),
        plugin=text(plugin) if is_clear else None,
        mode=text(first.get("mode")) or next(iter(MODES.get(str(plugin), ())), None),
        vlan=_vlan(first, device),
        device=text(device) if is_clear else None,
        ipam=text(ipam) if is_clear else None,
        is_pod_network=plugin == _OVN and first.get("role") == "primary",
        resource=text(resource) if is_clear else None,
        is_rdma=any(each.get("type") == "rdma" or each.get("isRdma") is True for each in plugins),
        trouble=trouble,
    )


def _vlan(plugin: JsonMap, device: object) -> str | None:
    """By its own number, or that of the device that it is over: `bond0.100`."""
    for key in _VLANS:
        number = whole(plugin.get(key))
        if number:
            return str(number)
    found = _OVER_VLAN.search(device) if isinstance(device, str) else None
    return None if found is None else found[1]


def _is_plugin(value: object) -> bool:
    return isinstance(value, str) and _PLUGIN.fullmatch(value) is not None


def _is_nics(resource: object) -> bool:
    """Not GPUs: they are the ranks'."""
    return is_name(resource, ResourceName) and not is_gpu(str(resource))


def _config(told: object) -> tuple[JsonMap, str | None]:
    """And what is wrong with it. A definition without one names a file on the nodes."""
    if told is None or told == "":
        return {}, None
    if not isinstance(told, str):
        return {}, "its `config` is no text"
    try:
        found = json.loads(told)
    except json.JSONDecodeError as error:
        return {}, f"its `config` is no JSON: {error}"
    except (ValueError, RecursionError):  # an integer of thousands of digits, thousands of levels
        return {}, "its `config` is JSON that can't be read"
    return (found, None) if isinstance(found, dict) else ({}, "its `config` is no JSON object")


def shown(value: object) -> str:
    """On one line, and short; what is no text may hold anything, a password too."""
    if not isinstance(value, str):
        return "(no text)"
    return printable(value[:_MOST_SHOWN]) + "…" * (len(value) > _MOST_SHOWN)


def pool_of(policy: JsonMap) -> SriovPool | None:
    """None: it gives none that can be asked for."""
    spec = mapping(policy.get("spec"))
    name = (text(spec.get("resourceName")) or "").rpartition("/")[2]
    if not is_name(f"{_OPERATORS_PREFIX}/{name}", ResourceName):
        return None
    return SriovPool(
        resource_name=name,
        is_rdma=spec.get("isRdma") is True,
        is_infiniband=str(spec.get("linkType", "")).lower() == "ib",
    )
