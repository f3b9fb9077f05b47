"""Which of a cluster's networks does a first experiment have, and why not the others? Its
`networks`, in which those that can't be used as they are stand as comments."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from broadgauge.agent.pod.address_map import PREFIX_LENGTH
from broadgauge.manifests.yaml_text import yaml_text
from broadgauge.messages.limits import MAX_NICS_PER_NODE
from broadgauge.platforms.kubernetes.inventory.cluster_inventory import Inventory
from broadgauge.platforms.kubernetes.inventory.found_addresses import NO_LENGTH, mapped_hosts
from broadgauge.platforms.kubernetes.inventory.found_definitions import (
    MULTUS_SHARED,
    OPENSHIFT_SHARED,
)
from broadgauge.platforms.kubernetes.inventory.found_networks import FoundNetwork, shared_rdma
from broadgauge.platforms.kubernetes.inventory.networks_together import (
    NetworksTogether,
    mapped_devices,
)
from broadgauge.running.experiment_text import wrapped

MAP_FILE = "nodename_ip_mapping.yaml"
MOST_NAMED = 4
"""Of nodes, in a sentence."""
_EFA = "vpc.amazonaws.com/efa"


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstNetworks:
    """The part `networks`; what its lines say is in `missing` or `notes` once more."""

    inventory: Inventory
    namespace: str
    found: NetworksTogether
    missing: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        yield "networks:"
        yield "  # What every pod has."
        yield "  - {name: pod, kubernetes: pod}"
        for network in self.found.taken:
            yield from self._network(network)
            self.notes.extend(f"networks.{network.name}: {note}" for note in network.notes)
        for network, reason in self.found.left:
            yield from _commented(self._network(network))
            yield from wrapped(f"{network.name} is left out: {reason}.", indent=2)
            self.missing.append(f"networks.{network.name}: left out, {reason}")
        yield from self._definitions_left_out()
        yield from self._resources_alone()
        if mapped_devices(self.found.taken):
            self._say_unmapped()

    def _network(self, network: FoundNetwork) -> Iterator[str]:
        about = [network.plugin or "its plugin is not in the API"]
        about += [f"over {', '.join(network.devices)}"] if network.devices else []
        about += [f"addresses by {network.ipam}"] if network.ipam else []
        yield from wrapped(f"{network.name}: {'; '.join(about)}.", indent=2)
        for note in network.notes:
            yield from wrapped(f"- {note}.", indent=2, hanging=2)
        face: dict[str, Any] = {
            "attachment": "existing",
            "definitions": _one_or_all(network.definitions),
        }
        if network.resources:
            face["resources"] = _one_or_all(network.resources)
        if network.transport is not None:
            face["transport"] = network.transport
        if network.is_mapped:
            face["devices"] = _one_or_all(network.devices)
            face["ipam"] = {"kind": "address-map", "map": MAP_FILE}
        count = len(network.definitions)
        nics = {"nics_per_node": [1, count]} if count > 1 else {}
        yield from yaml_text([{"name": network.name, **nics, "kubernetes": face}]).splitlines()

    def _definitions_left_out(self) -> Iterator[str]:
        for each in self.inventory.known_definitions:
            name = f"{each.namespace}/{each.name}"
            is_ours = each.namespace in (self.namespace, MULTUS_SHARED)
            may_be_shared = each.namespace in OPENSHIFT_SHARED and self.inventory.may_be_openshift
            if each.trouble is not None:
                yield from wrapped(f"{name} is left out: {each.trouble}.", indent=2)
                if is_ours:
                    self.missing.append(f"network {name}: not understood: {each.trouble}")
            elif each.is_pod_network and is_ours:
                yield from wrapped(
                    f"{name} is left out: it is the namespace's pod network.", indent=2
                )
            elif may_be_shared and not is_ours:
                words = f"it is of {each.namespace}, which OpenShift's Multus may share: try it"
                yield from wrapped(f"{name} is left out: {words}.", indent=2)
                self.missing.append(f"network {name}: left out, {words}")
            elif not is_ours:
                yield from wrapped(f"{name} is left out: it is of another namespace.", indent=2)

    def _resources_alone(self) -> Iterator[str]:
        """RDMA and other devices that no definition leads to."""
        found = Counter[str]()
        for node in self.found.nodes:
            for key, count in node.devices:
                found[key] = max(found[key], count)
        for network in (*self.found.taken, *(each for each, _ in self.found.left)):
            for key in network.resources:
                found.pop(key, None)
        adapters = found.pop(_EFA, 0)
        if adapters:
            nics = min(adapters, MAX_NICS_PER_NODE)
            yield from wrapped(
                f"AWS's Elastic Fabric Adapter, {nics} of the {adapters} that a node has; the "
                "image needs libfabric and aws-ofi-nccl:",
                indent=2,
            )
            face = "kubernetes: {attachment: device-plugin, profile: efa}"
            yield f"  # - {{name: efa, nics_per_node: {nics}, {face}}}"
            self.missing.append(
                f"{_EFA}: name an image with libfabric and aws-ofi-nccl, then take it in"
            )
        for key in [each for each in shared_rdma(self.inventory) if each in found]:
            yield from wrapped(
                f"{key} (up to {found.pop(key)} a node) is a resource that no definition names: "
                "add it as `resources`, and `transport`, to the network whose devices it is.",
                indent=2,
            )
            self.missing.append(f"{key}: over which network its devices are is not in the API")
        if found:
            names = ", ".join(f"{key} ({count} a node)" for key, count in sorted(found.items()))
            yield from wrapped(f"Further resources of these nodes: {names}.", indent=2)

    def _say_unmapped(self) -> None:
        devices = mapped_devices(self.found.taken)
        known = mapped_hosts(self.found.nodes, devices)
        self.notes.append(
            f"{MAP_FILE}: the only other address of each node is taken for that of "
            f"{', '.join(devices)}, which the API does not say"
        )
        if any(line.endswith(NO_LENGTH) for line in known.values()):
            self.notes.append(
                f"{MAP_FILE}: prefix lengths are not in the API where the map says so: "
                f"/{PREFIX_LENGTH} is assumed"
            )
        lacking = [node.name for node in self.found.nodes if node.name not in known]
        if lacking:
            named = ", ".join(lacking[:MOST_NAMED]) + ", …" * (len(lacking) > MOST_NAMED)
            self.missing.append(f"{MAP_FILE}: no address of {named}, which pods won't be placed on")


def _one_or_all(values: Sequence[str]) -> str | list[str]:
    return values[0] if len(values) == 1 else list(values)


def _commented(lines: Iterator[str]) -> Iterator[str]:
    """Of a list's entry; what is a comment already stays as it is."""
    for line in lines:
        yield line if line.lstrip().startswith("#") else f"  # {line[2:]}"
