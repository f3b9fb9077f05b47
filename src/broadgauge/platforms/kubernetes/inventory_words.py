"""What is a cluster, in lines for people?"""

from collections import Counter
from collections.abc import Iterator

from broadgauge.platforms.kubernetes.inventory import ClusterNode, Inventory, NotKnown


def inventory_words(inventory: Inventory) -> Iterator[str]:
    """Versions first, then alike nodes once, with their number."""
    yield f"Kubernetes: {_told(inventory.version)}"
    if not isinstance(inventory.openshift, NotKnown):
        yield f"OpenShift: {inventory.openshift}"
    if isinstance(inventory.operators, NotKnown):
        yield f"operators: unknown, {inventory.operators.why}"
    else:
        found = [
            f"{name} {version or '(version unknown)'}"
            for name, version in inventory.operators.items()
        ]
        yield f"operators: {', '.join(found) or 'none that is known here'}"
    if isinstance(inventory.nodes, NotKnown):
        yield f"nodes: unknown, {inventory.nodes.why}"
        return
    for words, count in sorted(Counter(map(_node_words, inventory.nodes)).items()):
        yield f"{count} {nodes_word(count)}: {words}"


def _node_words(node: ClusterNode) -> str:
    gpus = f"{node.num_gpus} x {node.gpu_product or 'GPU'}" if node.num_gpus else "no GPU"
    parts = [
        node.instance_type or "instance type unknown",
        *([] if node.zone is None else [node.zone]),
        gpus,
        *([] if node.driver is None else [f"driver {node.driver}"]),
        *(f"{count} {key}" for key, count in node.devices),
        *([] if node.is_usable else ["not ready, or closed to pods"]),
    ]
    return ", ".join(parts)


def _told(value: str | NotKnown) -> str:
    return f"unknown, {value.why}" if isinstance(value, NotKnown) else value


def nodes_word(count: int) -> str:
    """`node` of one."""
    return "node" if count == 1 else "nodes"
