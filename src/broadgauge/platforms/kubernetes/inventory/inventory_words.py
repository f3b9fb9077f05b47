"""What is a cluster, in lines for people?"""

from collections import Counter
from collections.abc import Iterator

from broadgauge.platforms.kubernetes.inventory.cluster_inventory import Inventory, NotKnown
from broadgauge.platforms.kubernetes.inventory.cluster_nodes import ClusterNode
from broadgauge.platforms.kubernetes.inventory.found_definitions import shown


def inventory_words(inventory: Inventory) -> Iterator[str]:
    """Versions first, then alike nodes once, with their number."""
    yield f"Kubernetes: {_told(inventory.version)}"
    if inventory.may_be_openshift:
        yield f"OpenShift: {_told(inventory.openshift)}"
    if isinstance(inventory.operators, NotKnown):
        yield f"operators: unknown, {inventory.operators.why}"
    else:
        found = [
            f"{name} {'(version unknown)' if version is None else shown(version)}"
            for name, version in inventory.operators.items()
        ]
        yield f"operators: {', '.join(found) or 'none that is known here'}"
    if isinstance(inventory.nodes, NotKnown):
        yield f"nodes: unknown, {inventory.nodes.why}"
    for words, count in sorted(Counter(map(_node_words, inventory.known_nodes)).items()):
        yield f"{count} {nodes_word(count)}: {words}"


def _node_words(node: ClusterNode) -> str:
    gpus = f"{node.num_gpus} x {node.gpu_product or 'GPU'}" if node.num_gpus else "no GPU"
    if node.is_gpu_shared and node.num_gpus:
        gpus += " (shared, or parts of GPUs)"
    elif node.other_gpus and not node.num_gpus:
        gpus = "no GPU that is used here"
    parts = [
        shown(node.instance_type or "instance type unknown"),
        *([] if node.zone is None else [shown(node.zone)]),
        *(each for each in (node.arch, node.other_system) if each is not None),
        gpus,
        *([] if node.driver is None else [f"driver {shown(node.driver)}"]),
        *(f"{count} {key}" for key, count in node.devices),
        *([] if node.is_usable else ["not ready, or closed to pods"]),
    ]
    return ", ".join(parts)


def _told(value: str | NotKnown) -> str:
    return f"unknown, {value.why}" if isinstance(value, NotKnown) else shown(value)


def nodes_word(count: int) -> str:
    """`node` of one."""
    return "node" if count == 1 else "nodes"
