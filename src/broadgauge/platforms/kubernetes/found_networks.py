"""Which networks can pods of this cluster use? From its definitions, pools and nodes' devices.

Definitions whose names differ in a last number are rails: NICs of one network.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from broadgauge.platforms.kubernetes.found_definitions import FoundDefinition, SriovPool
from broadgauge.platforms.kubernetes.inventory import ClusterNode, Inventory, NotKnown
from broadgauge.specs.transports import Transport

MULTUS_SHARED = "default"
"""Pods of every namespace may use its definitions, where Multus keeps namespaces apart.

Source: Multus, "Configuration reference", `namespaceIsolation` and `globalNamespaces`."""
_RAIL = re.compile(r"[-.]?\d+$")
_OVER_ETHERNET = ("macvlan", "ipvlan")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundNetwork:
    """One entry of `networks`."""

    name: str
    definitions: tuple[str, ...]
    """As a pod names them, one a NIC."""
    plugin: str | None
    devices: tuple[str, ...]
    """Of the node, one a NIC; empty: not all are known."""
    ipam: str | None
    resources: tuple[str, ...]
    transport: Transport | None
    """None: no RDMA is known of."""
    is_mapped: bool
    """Nobody gives it addresses: the fabric gave them to its nodes' devices."""
    notes: tuple[str, ...] = ()


def found_networks(inventory: Inventory, namespace: str) -> tuple[FoundNetwork, ...]:
    """Beside the pod network, those that pods of this namespace may use."""
    if isinstance(inventory.definitions, NotKnown):
        return ()
    usable = [
        each
        for each in inventory.definitions
        if each.trouble is None and each.namespace in (namespace, MULTUS_SHARED)
    ]
    rails: dict[tuple[str, str, str | None, str | None], list[FoundDefinition]] = {}
    for each in sorted(usable, key=lambda each: (each.namespace, _natural(each.name))):
        stem = _RAIL.sub("", each.name) or each.name
        rails.setdefault((each.namespace, stem, each.plugin, each.ipam), []).append(each)
    pools = () if isinstance(inventory.pools, NotKnown) else inventory.pools
    shared = shared_rdma(inventory, usable)
    ethernets = [key for key in rails if key[2] in _OVER_ETHERNET]
    names: set[str] = set()
    return tuple(
        _network(
            _free_name(key[1] if len(same) > 1 else same[0].name, names),
            same,
            namespace,
            pools,
            shared[0] if len(shared) == 1 and ethernets == [key] else None,
        )
        for key, same in rails.items()
    )


def out_of_reach(inventory: Inventory, namespace: str) -> Iterator[str]:
    """Definitions that are left out, and why."""
    if isinstance(inventory.definitions, NotKnown):
        return
    for each in inventory.definitions:
        name = f"{each.namespace}/{each.name}"
        if each.trouble is not None:
            yield f"{name}: {each.trouble}"
        elif each.namespace not in (namespace, MULTUS_SHARED):
            yield f"{name} is of another namespace"


def not_understood(inventory: Inventory, namespace: str) -> Iterator[str]:
    """Definitions that pods of this namespace could use, and why nobody knows what they are."""
    if isinstance(inventory.definitions, NotKnown):
        return
    for each in inventory.definitions:
        if each.trouble is not None and each.namespace in (namespace, MULTUS_SHARED):
            yield f"network {each.namespace}/{each.name}: not understood: {each.trouble}"


def shared_rdma(inventory: Inventory, usable: Sequence[FoundDefinition]) -> tuple[str, ...]:
    """Resources of a shared device plugin, which no definition names."""
    named = {each.resource for each in usable}
    nodes: tuple[ClusterNode, ...] = (
        () if isinstance(inventory.nodes, NotKnown) else inventory.nodes
    )
    found = {key for node in nodes for key, _ in node.devices if key.startswith("rdma/")}
    return tuple(sorted(found - named))


def _network(
    name: str,
    rails: list[FoundDefinition],
    namespace: str,
    pools: Sequence[SriovPool],
    shared: str | None,
) -> FoundNetwork:
    first, notes = rails[0], list[str]()
    devices = [each.device for each in rails if each.device is not None]
    resources = [each.resource for each in rails if each.resource is not None]
    transport = _transport(rails, pools)
    if transport is None and shared is not None and not resources:
        resources = [shared]
        transport = "infiniband" if shared.endswith("_ib") else "roce"
        notes.append(
            f"{shared} is taken for its RDMA devices: the only such resource, and the only "
            "definition over Ethernet. That they belong together is not in the API; where they "
            "don't, the agent in the pod refuses to train."
        )
    is_mapped = first.plugin == "host-device" and first.ipam is None
    if first.plugin == "host-device" and first.ipam is not None:
        notes.append(
            f"addresses come from {first.ipam}: a fabric that accepts only the address that it "
            "gave to a node, as a VPC does, needs `ipam: {kind: address-map, map: …}`"
        )
    return FoundNetwork(
        name=name,
        definitions=tuple(_as_named(each, namespace) for each in rails),
        plugin=first.plugin,
        devices=tuple(devices) if len(devices) == len(rails) else (),
        ipam=first.ipam,
        resources=tuple(dict.fromkeys(resources)) if len(set(resources)) == 1 else tuple(resources),
        transport=transport,
        is_mapped=is_mapped,
        notes=tuple(notes),
    )


def _transport(rails: Sequence[FoundDefinition], pools: Sequence[SriovPool]) -> Transport | None:
    """What the definitions, and the policies of their resources, say of RDMA."""
    of_rails = {each.resource for each in rails if each.resource is not None}
    behind = [pool for pool in pools if pool.resource in of_rails]
    if any(each.plugin in ("ib-sriov", "ipoib") for each in rails):
        return "infiniband"
    if any(pool.is_rdma for pool in behind):
        return "infiniband" if any(pool.is_infiniband for pool in behind) else "roce"
    if any(each.is_rdma or (each.resource or "").startswith("rdma/") for each in rails):
        return "roce"
    return None


def _as_named(definition: FoundDefinition, namespace: str) -> str:
    if definition.namespace == namespace:
        return definition.name
    return f"{definition.namespace}/{definition.name}"


def _free_name(text: str, taken: set[str]) -> str:
    """As a network of an experiment may be named."""
    stem = re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")[:40].strip("-.") or "network"
    name, number = stem, 1
    while name in taken or name == "pod":
        number += 1
        name = f"{stem}-{number}"
    taken.add(name)
    return name


def _natural(name: str) -> list[tuple[int, str]]:
    """`port-2` before `port-10`."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]
