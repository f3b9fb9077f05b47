"""Which addresses did a fabric give to nodes' devices, as far as the API tells? The address map."""

from collections.abc import Sequence

from broadgauge.platforms.kubernetes.inventory import ClusterNode


def address_map(nodes: Sequence[ClusterNode], devices: Sequence[str]) -> str:
    """Lines that are known, and in comments those that are not: agent/pod/address_map.py has the
    form."""
    lines = [
        "# The address that the fabric gave to each node's device: host:device:interface:ip,",
        "# with the prefix length where it is not /24: worker-2:ens13:net1:10.249.65.9/26",
    ]
    if not nodes:
        lines.append("# No node is known: add a line for each node and device.")
    for node in nodes:
        address = only_address(node, devices)
        others = ", ".join(node.further_addresses)
        if address is None and others:
            lines.append(f"# {node.name} has {others}: which device has which is not in the API.")
        for number, device in enumerate(devices, start=1):
            if address is not None:
                lines.append(f"{node.name}:{device}:net{number}:{address}")
            else:
                lines.append(f"# {node.name}:{device}:net{number}:ADDRESS")
    return "".join(f"{line}\n" for line in lines)


def only_address(node: ClusterNode, devices: Sequence[str]) -> str | None:
    """Where a node has one further address and one device is mapped, there is no choice."""
    only = len(devices) == 1 and len(node.further_addresses) == 1
    return node.further_addresses[0] if only else None
