"""What do a pod's annotation and a NetworkAttachmentDefinition ask for, and what is said back?

Sources: the Network Plumbing Working Group's "Kubernetes Network Custom Resource Definition
De-facto Standard" 1.3 (annotation, status), the CNI specification 1.0.0 (configuration), and
Multus' messages (k8sclient.go, multus.go).
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

NETWORKS = "k8s.v1.cni.cncf.io/networks"
NETWORK_STATUS = "k8s.v1.cni.cncf.io/network-status"
RESOURCE_NAME = "k8s.v1.cni.cncf.io/resourceName"
KNOWN_TYPES = ("host-device", "macvlan", "ipvlan", "bridge", "sriov")
CHAINED_TYPES = ("tuning", "sbr", "portmap", "rdma", "vrf")


class CniError(Exception):
    """An attachment can't be made; the text stands in the FailedCreatePodSandBox event.

    `network`: which network's plugin failed, None where none was asked yet.
    """

    def __init__(self, text: str, network: str | None = None) -> None:
        super().__init__(text)
        self.network = network


@dataclass(frozen=True, kw_only=True)
class Selection:
    """One network that a pod's annotation names."""

    namespace: str
    name: str
    interface: str
    """As asked, else net1, net2, … by its place."""
    addresses: tuple[str, ...] = ()
    mac: str | None = None

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, kw_only=True)
class Attachment:
    """What one NetworkAttachmentDefinition asks of the node."""

    selection: Selection
    kind: str
    config: Json
    """Of the first plugin; of a list with the list's name and version."""
    chained: tuple[Json, ...]
    resource: str | None

    @property
    def ipam(self) -> Json:
        return self.config.get("ipam") or {}


_DNS_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_TERM = re.compile(r"(?:([^/@]+)/)?([^/@]+)(?:@([^/@]+))?")


def selections(annotation: str | None, namespace: str) -> list[Selection]:
    """The annotation's three forms: a comma list, `ns/name@interface`, a JSON list of objects."""
    text = (annotation or "").strip()
    if not text:
        return []
    if any(sign in text for sign in '[{"'):
        raw = _json_terms(text)
    else:
        raw = [_plain_term(term.strip()) for term in text.split(",")]
    found = []
    for number, one in enumerate(raw, start=1):
        name, own_namespace = one["name"], one.get("namespace") or namespace
        for part in (name, own_namespace):
            if not _DNS_NAME.fullmatch(part):
                raise CniError(
                    "parsePodNetworkAnnotation: parsePodNetworkObjectName: failed to parse: one or "
                    f"more items did not match comma-delimited format (must consist of lower case "
                    "alphanumeric characters). Must start and end with an alphanumeric "
                    "character), "
                    f'mismatch @ "{part}"'
                )
        ips = one.get("ips") or ()
        found.append(
            Selection(
                namespace=own_namespace,
                name=name,
                interface=one.get("interface") or f"net{number}",
                addresses=tuple(ips) if isinstance(ips, list | tuple) else (str(ips),),
                mac=one.get("mac"),
            )
        )
    return found


def _json_terms(text: str) -> list[Json]:
    try:
        raw = json.loads(text)
    except ValueError as error:
        raise CniError(
            f"parsePodNetworkAnnotation: failed to parse pod Network Attachment Selection "
            f"Annotation JSON format: {error}"
        ) from None
    if not isinstance(raw, list) or not all(map(_is_selection, raw)):
        raise CniError(
            "parsePodNetworkAnnotation: failed to parse pod Network Attachment Selection "
            "Annotation JSON format: want a list of objects that have a name"
        )
    return raw


def _is_selection(one: object) -> bool:
    return isinstance(one, dict) and all(
        isinstance(one.get(key), kind)
        for key, kind in (("name", str), ("namespace", str | None), ("interface", str | None))
    )


def _plain_term(term: str) -> Json:
    match = _TERM.fullmatch(term)
    if match is None:
        raise CniError(
            f"parsePodNetworkAnnotation: parsePodNetworkObjectName: Invalid network object "
            f"(failed at '/' or '@'): {term}"
        )
    return {"namespace": match[1], "name": match[2], "interface": match[3]}


def missing_definition(selection: Selection) -> CniError:
    """Multus' words for a NetworkAttachmentDefinition that is not there."""
    return CniError(
        f"cannot find a network-attachment-definition ({selection.name}) in namespace "
        f"({selection.namespace}): network-attachment-definitions.k8s.cni.cncf.io "
        f'"{selection.name}" not found'
    )


def read_definition(selection: Selection, definition: Json) -> Attachment:
    """Raises CniError for a configuration that is no JSON, or that no plugin here knows."""
    text = (definition.get("spec") or {}).get("config") or ""
    try:
        config = json.loads(text)
    except ValueError as error:
        raise CniError(
            "failed to load delegate: parseJSON: failed to parse config of "
            f'"{selection.full_name}": '
            f"error parsing configuration: {error}"
        ) from None
    if not isinstance(config, dict):
        raise CniError("error parsing configuration: want an object")
    plugins = config.get("plugins", [config])
    if not isinstance(plugins, list) or not plugins:
        raise CniError("error parsing configuration list: no plugins in list")
    first, *rest = plugins
    for plugin, known in ((first, KNOWN_TYPES), *((one, CHAINED_TYPES) for one in rest)):
        kind = plugin.get("type") if isinstance(plugin, dict) else None
        if not kind:
            raise CniError("error parsing configuration: missing 'type'")
        if kind not in known:
            raise CniError(f'failed to find plugin "{kind}" in path [/opt/cni/bin]')
    merged = {"name": config.get("name") or selection.name} | first
    annotations = definition["metadata"].get("annotations") or {}
    return Attachment(
        selection=selection,
        kind=first["type"],
        config=merged,
        chained=tuple(rest),
        resource=annotations.get(RESOURCE_NAME),
    )


@dataclass(frozen=True, kw_only=True)
class Attached:
    """An interface that a pod has."""

    network: str
    """The name in the status: "ns/name", or of the pod network."""
    interface: str
    addresses: tuple[str, ...]
    mac: str
    mtu_bytes: int
    is_default: bool = False
    pci_address: str | None = None


def network_status(attached: Sequence[Attached]) -> str:
    """The annotation's value, indented as Multus writes it."""
    entries = []
    for one in attached:
        entry: Json = {"name": one.network, "interface": one.interface}
        if one.addresses:
            entry["ips"] = [text.partition("/")[0] for text in one.addresses]
        entry["mac"] = one.mac
        if one.is_default:
            entry["default"] = True
        entry["mtu"] = one.mtu_bytes
        entry["dns"] = {}
        if one.pci_address is not None:
            entry["device-info"] = {
                "type": "pci",
                "version": "1.1.0",
                "pci": {"pci-address": one.pci_address},
            }
        entries.append(entry)
    return json.dumps(entries, indent=4)


def sandbox_failure(pod: Json, error: CniError, container_id: str) -> str:
    """The message of the event FailedCreatePodSandBox, as kubelet, CRI and Multus nest it."""
    metadata = pod["metadata"]
    place = f"{metadata['namespace']}/{metadata['name']}/{metadata['uid']}"
    if error.network is None:
        said = (
            f"Multus: [{place}]: error loading k8s delegates k8s args: TryLoadPodDelegates: error "
            "in getting k8s network for pod: GetNetworkDelegates: failed getting the delegate: "
            f"{error}"
        )
    else:
        network = error.network
        said = f'[{place}:{network}]: error adding container to network "{network}": {error}'
    return (
        "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network "
        f'for sandbox "{container_id}": plugin type="multus" name="multus-cni-network" failed '
        f"(add): {said}"
    )
