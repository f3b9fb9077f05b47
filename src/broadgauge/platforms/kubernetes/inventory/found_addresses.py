"""Which addresses did a fabric give to nodes' devices, as far as the API tells? The address map.

The API tells a node's addresses, and of none whose it is: where a node has one beside its own, and
one device is mapped, it is taken for that device's.
"""

from collections.abc import Sequence

from broadgauge.agent.pod.address_map import PREFIX_LENGTH, AddressMapError, parse_map
from broadgauge.manifests.mapped_nodes import MOST_NAMED_NODES
from broadgauge.platforms.kubernetes.inventory.cluster_nodes import ClusterNode

_HEAD = """\
# The address that the fabric gave to each node's device: host:device:interface:ip, with the prefix
# length where it is not /24: worker-2:ens13:net1:10.249.65.9/26
# host is the node's name, as `kubectl get nodes` has it; device is what the node calls the NIC.
# interface is what a pod will call it: Multus, which names attached NICs net1, net2, … by itself,
# is told this name. It is the same for a device on all nodes, and another for each device.
# The API does not say which device has an address: where a node has one beside its own it is taken.
"""
NO_LENGTH = f"  # the prefix length is not in the API: /{PREFIX_LENGTH} is assumed"


def address_map(nodes: Sequence[ClusterNode], devices: Sequence[str]) -> str:
    """Lines that are known, and in comments those that are not: agent/pod/address_map.py has the
    form."""
    known = mapped_hosts(nodes, devices)
    lines = [] if nodes else ["# No node is known: add a line for each node and device."]
    for node in nodes[:MOST_NAMED_NODES]:
        if node.name in known:
            lines.append(known[node.name])
            continue
        others = ", ".join(node.further_addresses)
        if others:
            lines.append(f"# {node.name} has {others}: which device has which is not in the API.")
        for number, device in enumerate(devices, start=1):
            lines.append(f"# {node.name}:{device}:net{number}:ADDRESS")
    return _HEAD + "".join(f"{line}\n" for line in lines)


def mapped_hosts(nodes: Sequence[ClusterNode], devices: Sequence[str]) -> dict[str, str]:
    """The line of each node whose device's address is known, by its name."""
    if len(devices) != 1:
        return {}
    lines: dict[str, str] = {}
    addresses: set[object] = set()
    for node in nodes[:MOST_NAMED_NODES]:
        if len(node.further_addresses) != 1:
            continue
        line = f"{node.name}:{devices[0]}:net1:{node.further_addresses[0]}"
        if "/" not in node.further_addresses[0]:
            line += NO_LENGTH
        try:
            (row,) = parse_map(line)
        except AddressMapError:  # a subnet's own address, say
            continue
        if row.address.ip not in addresses:
            addresses.add(row.address.ip)
            lines[node.name] = line
    return lines
