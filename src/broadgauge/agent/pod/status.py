"""What does Multus say of a pod's networks: interface, addresses and device of each attachment?

Source: Kubernetes Network Plumbing Working Group, "Network Attachment Definition De-facto
Standard" 1.3, 4.1.4 (network status annotation) and its Go types `NetworkStatus`, `DeviceInfo` and
`PciDevice`; `networks-status` is the annotation's older name. A downward API file has a line
`key="value"` for each annotation, the value as Go's `%q` quotes it (Kubernetes,
pkg/fieldpath/fieldpath.go, FormatMap).
"""

import ipaddress
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

ANNOTATIONS = ("k8s.v1.cni.cncf.io/network-status", "k8s.v1.cni.cncf.io/networks-status")
"""The newer name counts where both are there."""
_QUOTED = re.compile(r'^([^=\s"]+)="((?:[^"\\]|\\.)*)"\s*$', re.MULTILINE)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{3}|.)", re.DOTALL)
_SHORT = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_LAST_CHARACTER = 0x10FFFF
_INTERFACE = re.compile(r"(?!\.{1,2}\Z)[!-.0-9;-~]{1,15}")
"""Source: Linux, net/core/dev.c, dev_valid_name; of these, printable ASCII."""
_NETWORK = re.compile(r"(?:[a-z0-9][a-z0-9-]{0,62}/)?[A-Za-z0-9][A-Za-z0-9_.-]{0,252}")
"""Source: Container Network Interface Specification 1.0, "Network configuration format", `name`;
with the namespace of a NetworkAttachmentDefinition before it, RFC 1123's label."""
_WORD = re.compile(r"[!-~]{1,253}")
"""Of addresses and devices."""


class StatusError(ValueError):
    """The annotation is there and is not what Multus writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkStatus:
    """One network of the pod."""

    name: str
    """`namespace/name` of a NetworkAttachmentDefinition; of the pod's own network what its plugin
    is called: `ovn-kubernetes`."""
    interface: str | None
    """None: the plugin made none, or does not say, as for some devices of DPDK and RDMA."""
    addresses: tuple[str, ...] = ()
    """As the plugin gave them, without prefix: `192.168.2.5`. An address map may have changed
    them since."""
    mac: str | None = None
    is_default: bool = False
    """Is it the network that every pod has?"""
    pci_address: str | None = None
    """Of the device that was given: `0000:03:02.3`."""
    rdma_device: str | None = None
    """`mlx5_3`, where the device plugin says."""


def read_annotations(text: str) -> dict[str, str]:
    """A downward API file's lines, by key; what is no such line is left out."""
    return {match[1]: _unquoted(match[2]) for match in _QUOTED.finditer(text)}


def _unquoted(text: str) -> str:
    return _ESCAPE.sub(lambda match: _character(match[1]), text)


def _character(escape: str) -> str:
    kind, digits = escape[0], escape[1:]
    if digits and kind in "xuU":
        number = int(digits, 16)
    elif len(escape) == 3:
        number = int(escape, 8)
    else:
        return _SHORT.get(kind, escape)
    return chr(number) if number <= _LAST_CHARACTER else "�"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodStatus:
    """The annotation, as far as it can be read."""

    networks: tuple[NetworkStatus, ...]
    """In Multus' order: the pod's own network, then the attachments as they were asked for."""
    left_out: tuple[str, ...] = ()
    """Which entries can't be read, and why."""


def status_of(annotations: Mapping[str, str]) -> PodStatus | None:
    """Of a pod's annotations; None: neither of the two is there. Raises StatusError."""
    text = next((annotations[name] for name in ANNOTATIONS if annotations.get(name)), None)
    return None if text is None else parse_status(text)


def parse_status(text: str) -> PodStatus:
    """The annotation's JSON. An entry that can't be read, which may be another network's, voids no
    other. Raises StatusError where there is no list.
    """
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StatusError(f"the network status is no JSON: {error}") from error
    if not isinstance(entries, list):
        raise StatusError(f"the network status is no list: {_shown(entries)}")
    networks, left_out = [], []
    for number, entry in enumerate(entries):
        try:
            networks.append(_entry(number, entry))
        except StatusError as error:
            left_out.append(str(error))
    return PodStatus(networks=tuple(networks), left_out=tuple(left_out))


def _entry(number: int, entry: object) -> NetworkStatus:
    place = f"network status, entry {number}"
    fields = _object(entry, place)
    device = _object(fields.get("device-info") or {}, f"{place}, device-info")
    pci = _object(device.get("pci") or {}, f"{place}, device-info.pci")
    addresses = fields.get("ips") or []
    if not isinstance(addresses, list):
        raise StatusError(f"{place}: ips is no list: {_shown(addresses)}")
    name = _text(fields, "name", place, _NETWORK)
    if name is None:
        raise StatusError(f"{place}: no name")
    return NetworkStatus(
        name=name,
        interface=_text(fields, "interface", place, _INTERFACE),
        addresses=tuple(_address(address, place) for address in addresses),
        mac=_text(fields, "mac", place),
        is_default=fields.get("default") is True,
        pci_address=_text(pci, "pci-address", place),
        rdma_device=_text(pci, "rdma-device", place),
    )


def _object(value: object, place: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise StatusError(f"{place}: no object: {_shown(value)}")
    return value


def _text(
    fields: Mapping[str, object], name: str, place: str, form: re.Pattern[str] = _WORD
) -> str | None:
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise StatusError(f"{place}: {name} is no text: {_shown(value)}")
    if value and not form.fullmatch(value):
        raise StatusError(f"{place}: {name} can't be {_shown(value)}")
    return value or None


def _address(value: object, place: str) -> str:
    text = value.partition("/")[0] if isinstance(value, str) else ""
    try:
        return str(ipaddress.ip_address("" if "%" in text else text))
    except ValueError:
        raise StatusError(f"{place}: ips has {_shown(value)}, which is no address") from None


def _shown(value: object) -> str:
    return ascii(value)[:60]
