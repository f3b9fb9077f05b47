"""What do a NetworkAttachmentDefinition and an SR-IOV policy say? Whoever wrote them, and whatever.

A definition that can't be understood has its `trouble` in words, and is no network to try.
Sources: Network Plumbing Working Group, "Kubernetes Network Custom Resource Definition De-facto
Standard" 1.3; CNI specification 1.1, "Configuration format"; SR-IOV network operator,
SriovNetworkNodePolicy; Linux, net/core/dev.c, dev_valid_name.
"""

import json
import re
from dataclasses import dataclass

from broadgauge.platforms.kubernetes.json_shapes import JsonMap, mapping, mappings, text, whole
from broadgauge.specs.kubernetes_names import LABEL, SUBDOMAIN

RESOURCE_ANNOTATION = "k8s.v1.cni.cncf.io/resourceName"
MOST_NAME_CHARACTERS = 253
_DEVICE = re.compile(r"(?!\.\.?$)[^\s/,:=]{1,15}")
"""As an experiment and an address map may name one."""
_RESOURCE = re.compile(
    rf"(?=.{{1,317}}$){SUBDOMAIN}/[A-Za-z0-9]([-A-Za-z0-9_.]{{0,61}}[A-Za-z0-9])?"
)
_PLUGIN = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_.]{0,62}")
"""A program's name."""
_MOST_SHOWN = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundDefinition:
    """A NetworkAttachmentDefinition."""

    namespace: str
    name: str
    plugin: str | None
    """Its CNI plugin, the first of a chain; None: its file is on the nodes, or `trouble`."""
    device: str | None
    """Of the node."""
    ipam: str | None
    """Who gives addresses; None: nobody."""
    resource: str | None
    is_rdma: bool
    """It says so itself (`isRdma`), or its chain has the plugin `rdma`."""
    mtu_bytes: int | None
    trouble: str | None
    """What is wrong with its configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SriovPool:
    """What a SriovNetworkNodePolicy gives to a resource."""

    resource: str
    is_rdma: bool
    is_infiniband: bool
    num_vfs: int


def is_object_name(name: object) -> bool:
    """May an object of Kubernetes be named so?"""
    return (
        isinstance(name, str)
        and len(name) <= MOST_NAME_CHARACTERS
        and re.fullmatch(SUBDOMAIN, name) is not None
    )


def is_resource(name: object) -> bool:
    """Is it an extended resource's name?"""
    return isinstance(name, str) and _RESOURCE.fullmatch(name) is not None


def definition_of(item: JsonMap) -> FoundDefinition:
    """Of an object with metadata."""
    metadata = mapping(item.get("metadata"))
    namespace = metadata.get("namespace", "default")
    config, trouble = _config(mapping(item.get("spec")).get("config"))
    plugins = mappings(config["plugins"]) if _is_chain(config) else [config]
    first = plugins[0] if plugins else {}
    ipam = mapping(first.get("ipam")).get("type")
    resource = mapping(metadata.get("annotations")).get(RESOURCE_ANNOTATION)
    device = first.get("device") or first.get("master") or first.get("bridge")
    checks = (
        (is_object_name(metadata.get("name")), metadata.get("name"), "an object"),
        (_is(LABEL, namespace), namespace, "a namespace"),
        (first.get("type") is None or _is(_PLUGIN, first["type"]), first.get("type"), "a plugin"),
        (ipam is None or _is(_PLUGIN, ipam), ipam, "a plugin for addresses"),
        (device is None or _is(_DEVICE, device), device, "a device"),
        (resource is None or is_resource(resource), resource, "a resource"),
    )
    for is_right, value, what in checks:
        if not is_right:
            trouble = trouble or f"`{shown(value)}` is no name of {what}"
    is_clear = trouble is None
    return FoundDefinition(
        namespace=shown(namespace),
        name=shown(metadata.get("name")),
        plugin=text(first.get("type")) if is_clear else None,
        device=text(device) if is_clear else None,
        ipam=text(ipam) if is_clear else None,
        resource=text(resource) if is_clear else None,
        is_rdma=any(each.get("type") == "rdma" or each.get("isRdma") is True for each in plugins),
        mtu_bytes=next((mtu for each in plugins if (mtu := whole(each.get("mtu")))), None),
        trouble=trouble,
    )


def _is(pattern: str | re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(pattern, value) is not None


def _is_chain(config: JsonMap) -> bool:
    return isinstance(config.get("plugins"), list)


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
    """On one line, and short: for words about what is no name."""
    words = value if isinstance(value, str) else repr(value)
    if len(words) > MOST_NAME_CHARACTERS or not words.isprintable():
        words = "".join(each if each.isprintable() else " " for each in words[:_MOST_SHOWN]) + "…"
    return words


def pool_of(policy: JsonMap) -> SriovPool | None:
    """The operator's resources have its prefix, openshift.io unless it is set otherwise.

    None: it gives none that can be asked for.
    """
    spec = mapping(policy.get("spec"))
    name = text(spec.get("resourceName")) or ""
    resource = name if "/" in name else f"openshift.io/{name}"
    if not is_resource(resource):
        return None
    return SriovPool(
        resource=resource,
        is_rdma=spec.get("isRdma") is True,
        is_infiniband=str(spec.get("linkType", "")).lower() == "ib",
        num_vfs=whole(spec.get("numVfs")) or 0,
    )
