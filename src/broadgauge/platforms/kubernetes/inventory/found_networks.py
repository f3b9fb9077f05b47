"""Which networks can pods of this cluster use? From its definitions, pools and nodes' devices.

Definitions whose names differ in a last number are rails: NICs of one network.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from broadgauge.agent.pod.found_nics import natural
from broadgauge.messages.limits import MAX_NICS_PER_NODE
from broadgauge.platforms.kubernetes.inventory.cluster_inventory import Inventory
from broadgauge.platforms.kubernetes.inventory.found_definitions import (
    MULTUS_SHARED,
    FoundDefinition,
    SriovPool,
)
from broadgauge.specs.networks.transports import NAMES

_RAIL = re.compile(r"[-.]?\d+$")
_AXIS = re.compile(r"(-nics)+(?=-|$)")
"""With a number behind it, of an axis' names: `a-nics-2`."""
_OVER_ETHERNET = ("macvlan", "ipvlan")
_OF_INFINIBAND = ("ib-sriov", "ipoib")
_NOT_FOR_SEVERAL = {
    "host-local": "host-local counts on each node by itself: pods of two nodes may get one "
    "address. Who counts over all nodes, as whereabouts does, gives each its own",
    "static": "static gives every pod the same addresses: pods of two nodes can't reach each "
    "other by them",
}
"""Plugins for addresses, and why several pods are not well off with them."""
_MOST_CUT_NAMED = 16
_MOST_NAME_CHARACTERS = 16
"""Names of jobs have room for 52, and the experiment, workload and shape stand in them, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundNetwork:
    """What can become an entry of `networks`."""

    name: str
    definitions: tuple[str, ...]
    """As a pod names them, one a NIC."""
    plugin: str | None
    mode: str | None
    """Of its plugin."""
    devices: tuple[str, ...]
    """Of the node, one a NIC; empty: they are not known."""
    ipam: str | None
    """Which plugin gives addresses; None: nobody."""
    resources: tuple[str, ...]
    """One a NIC; empty: none is asked for."""
    transport: Literal["roce", "infiniband"] | None
    """None: no RDMA is known of."""
    notes: tuple[str, ...] = ()

    @property
    def takes_its_devices(self) -> bool:
        """Are they moved into one pod, and no other has them?"""
        return self.plugin == "host-device"

    @property
    def has_no_ipam(self) -> bool:
        """Is nothing in the API that gives its pods addresses, though they need some?"""
        return (
            self.plugin is not None
            and self.ipam is None
            and self.transport != "infiniband"
            and not self.is_mapped
        )

    @property
    def is_mapped(self) -> bool:
        """Nobody gives it addresses: the fabric gave them to its nodes' devices."""
        return self.takes_its_devices and self.ipam is None and self.transport != "infiniband"


def found_networks(inventory: Inventory, namespace: str) -> tuple[FoundNetwork, ...]:
    """Beside the pod network, those that pods of this namespace may use."""
    usable = [
        each
        for each in inventory.known_definitions
        if each.trouble is None
        and not each.is_pod_network
        and each.namespace in (namespace, MULTUS_SHARED)
    ]
    networks = list(_rails(usable, inventory.known_pools))
    shared = shared_rdma(inventory)
    is_paired = len(shared) == 1 and not shared[0].endswith("_ib")
    over_ethernet = [each for each in networks if each[0].plugin in _OVER_ETHERNET]
    names: set[str] = set()
    return tuple(
        _network(
            _free_name(_stem(rails[0]) if len(rails) > 1 else rails[0].name, names),
            rails,
            namespace,
            inventory.known_pools,
            shared[0] if is_paired and over_ethernet == [rails] else None,
        )
        for rails in networks
    )


def _rails(
    usable: Sequence[FoundDefinition], pools: Sequence[SriovPool]
) -> Iterator[list[FoundDefinition]]:
    """Of each network, alike in all but their devices. Two over one device are two ways to it, and
    no rails."""
    alike: dict[tuple[object, ...], list[FoundDefinition]] = {}
    for each in sorted(usable, key=lambda each: (each.namespace, natural(each.name))):
        has = (each.device is not None, each.resource is not None)
        kind = (each.plugin, each.mode, each.ipam, each.vlan, _transport(each, pools))
        key = (each.namespace, _stem(each), *kind, *has)
        alike.setdefault(key, []).append(each)
    for rails in alike.values():
        devices = [each.device for each in rails if each.device is not None]
        if len(set(devices)) == len(devices):
            yield rails
        else:
            yield from ([each] for each in rails)


def _notes_on_names(alike: Sequence[FoundDefinition]) -> Iterator[str]:
    if len(alike) > 1:
        yield (
            "its definitions are taken for rails, NICs of one network, by their names: whether "
            "they are is not in the API"
        )
    cut = [each.name for each in alike[MAX_NICS_PER_NODE:]]
    if cut:
        named = ", ".join(cut[:_MOST_CUT_NAMED]) + ", …" * (len(cut) > _MOST_CUT_NAMED)
        verb = "is" if len(cut) == 1 else "are"
        yield f"{named} {verb} left out: a node has {MAX_NICS_PER_NODE} NICs at most"


def _stem(definition: FoundDefinition) -> str:
    return _RAIL.sub("", definition.name) or definition.name


def shared_rdma(inventory: Inventory) -> tuple[str, ...]:
    """Resources of a shared device plugin, which no definition names."""
    named = {each.resource for each in inventory.known_definitions}
    found = {key for node in inventory.known_nodes for key, _ in node.devices}
    return tuple(sorted(key for key in found - named if key.startswith("rdma/")))


def _network(
    name: str,
    alike: Sequence[FoundDefinition],
    namespace: str,
    pools: Sequence[SriovPool],
    shared: str | None,
) -> FoundNetwork:
    rails = alike[:MAX_NICS_PER_NODE]
    first, notes = rails[0], list(_notes_on_names(alike))
    resources = tuple(each.resource for each in rails if each.resource is not None)
    transport = _transport(first, pools)
    if not resources and shared is not None:
        resources = (shared,)
        transport = "roce"
        notes.append(
            f"{shared} is taken for its RDMA devices: the only such resource, and the only "
            "definition over Ethernet. That they belong together is not in the API; where they "
            "don't, pods refuse to begin"
        )
    elif transport is not None and not resources:
        notes.append(
            f"its definition says {NAMES[transport]}, and names no resource that gives pods "
            "/dev/infiniband: add `resources`, then `transport`"
        )
        transport = None
    if first.ipam in _NOT_FOR_SEVERAL:
        notes.append(_NOT_FOR_SEVERAL[first.ipam])
    if first.plugin == "host-device" and first.ipam is not None:
        notes.append(
            f"{first.ipam} gives its pods addresses, which an own switch carries. A fabric that "
            "accepts only the address that it gave to a node, as a VPC does, drops them: there "
            "add `ipam: {kind: address-map, map: …}`"
        )
    return FoundNetwork(
        name=name,
        definitions=tuple(_as_named(each, namespace) for each in rails),
        plugin=first.plugin,
        mode=first.mode,
        devices=tuple(each.device for each in rails if each.device is not None),
        ipam=first.ipam,
        resources=resources[:1] if len(set(resources)) == 1 else resources,
        transport=transport,
        notes=tuple(notes),
    )


def _transport(
    definition: FoundDefinition, pools: Sequence[SriovPool]
) -> Literal["roce", "infiniband"] | None:
    """What it, and the policies of its resource, say of RDMA."""
    resource = definition.resource or ""
    behind = [pool for pool in pools if pool.resource_name == resource.rpartition("/")[2]]
    if definition.plugin in _OF_INFINIBAND:
        return "infiniband"
    if any(pool.is_rdma for pool in behind):
        return "infiniband" if any(pool.is_infiniband for pool in behind) else "roce"
    return "roce" if definition.is_rdma or resource.startswith("rdma/") else None


def _as_named(definition: FoundDefinition, namespace: str) -> str:
    if definition.namespace == namespace:
        return definition.name
    return f"{definition.namespace}/{definition.name}"


def _free_name(text: str, taken: set[str]) -> str:
    """As a network of an experiment may be named."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower())
    stem = _cut(_AXIS.sub("", plain), _MOST_NAME_CHARACTERS) or "network"
    name, number = stem, 1
    while name in taken or name == "pod":
        number += 1
        name = f"{_cut(stem, _MOST_NAME_CHARACTERS - 3)}-{number}"
    taken.add(name)
    return name


def _cut(stem: str, most: int) -> str:
    return _AXIS.sub("", stem[:most].strip("-"))
