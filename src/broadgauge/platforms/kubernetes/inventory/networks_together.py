"""Which of a cluster's networks can the same pods have, on how many nodes? A run attaches all of
its networks to each pod, so that what one of them lacks would keep all of them waiting."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from broadgauge.manifests.attachment_conflicts import why_not_shared
from broadgauge.platforms.kubernetes.inventory.cluster_nodes import ClusterNode
from broadgauge.platforms.kubernetes.inventory.found_addresses import mapped_hosts
from broadgauge.platforms.kubernetes.inventory.found_networks import FoundNetwork

MOST_NETWORKS = 8
"""Of a first experiment: each is a case of every workload and shape."""


@dataclass(slots=True, kw_only=True)
class NetworksTogether:
    """Taken in their order, and why others are not."""

    nodes: Sequence[ClusterNode]
    """Empty: they are not known, and what they have is not looked at."""
    num_pods: int
    taken: list[FoundNetwork] = field(default_factory=list)
    left: list[tuple[FoundNetwork, str]] = field(default_factory=list)
    _asked: Counter[str] = field(default_factory=Counter)
    """Resources of a pod, by the networks that are taken."""

    def add(self, network: FoundNetwork) -> None:
        reason = self._why_not(network)
        if reason is not None:
            self.left.append((network, reason))
            return
        self.taken.append(network)
        self._asked += _asked_by(network)

    def _why_not(self, network: FoundNetwork) -> str | None:
        if len(self.taken) == MOST_NETWORKS:
            return f"{MOST_NETWORKS} networks are enough to begin with"
        for other in self.taken:
            pair = (other, network)
            both = set(network.devices) & set(other.devices)
            why = why_not_shared(*({"type": each.plugin, "mode": each.mode} for each in pair))
            if both and why is not None:
                return f"{other.name} has {min(both)}, too, and {why}"
        if network.has_no_ipam:
            return "its definition names no `ipam`: whether pods get an address is not in the API"
        return self._why_not_mapped(network) or self._what_nodes_lack(network)

    def _why_not_mapped(self, network: FoundNetwork) -> str | None:
        if not network.is_mapped:
            return None
        if not network.devices:
            return "nobody gives it addresses, and which device it takes is not in the API"
        if len(self._able((), network)) >= self.num_pods:
            return None
        own = ", ".join(network.devices)
        return f"which addresses the fabric gave to {own} of each node is not in the API"

    def _what_nodes_lack(self, network: FoundNetwork) -> str | None:
        asked = self._asked + _asked_by(network)
        if not self.nodes or len(self._able(asked.items(), network)) >= self.num_pods:
            return None
        too_few = f"fewer than {self.num_pods} of these nodes have"
        own = ", ".join(dict.fromkeys(network.resources))
        if not own:
            return f"{too_few} what the networks above ask for"
        users = [each.name for each in self.taken if set(each.resources) & set(network.resources)]
        if users and len(self._able(_asked_by(network).items(), network)) >= self.num_pods:
            return f"{too_few} {own} for {', '.join(users)} as well, in one pod"
        return f"{too_few} {own}, as many as one pod would need"

    def _able(self, asked: Iterable[tuple[str, int]], network: FoundNetwork) -> list[ClusterNode]:
        """Nodes that have so many of each resource, and the addresses of all that is mapped."""
        able = [
            node
            for node in self.nodes
            if all(dict(node.devices).get(key, 0) >= count for key, count in asked)
        ]
        devices = mapped_devices((*self.taken, network))
        if not devices:
            return able
        known = mapped_hosts(self.nodes, devices)
        return [node for node in able if node.name in known]


def mapped_devices(networks: Iterable[FoundNetwork]) -> tuple[str, ...]:
    """Whose addresses the map has, in the order of their interfaces."""
    found = (device for each in networks if each.is_mapped for device in each.devices)
    return tuple(dict.fromkeys(found))


def _asked_by(network: FoundNetwork) -> Counter[str]:
    """One for each NIC, the last of fewer for the rest."""
    own = network.resources
    return Counter(own[min(nic, len(own) - 1)] for nic in range(len(network.definitions)) if own)
