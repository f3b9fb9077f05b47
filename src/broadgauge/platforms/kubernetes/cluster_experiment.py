"""Which experiment suits this cluster to begin with? Its text, its address map, what is missing.

Pure: from an inventory. What could not be known stands in the comments, and is said.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from broadgauge.manifests.yaml_text import quoted, scalar
from broadgauge.messages.limits import MAX_NICS_PER_NODE
from broadgauge.platforms.kubernetes.found_addresses import address_map, only_address
from broadgauge.platforms.kubernetes.found_networks import (
    FoundNetwork,
    found_networks,
    not_understood,
    out_of_reach,
    shared_rdma,
)
from broadgauge.platforms.kubernetes.inventory import (
    GPU_PRODUCT,
    ClusterNode,
    Inventory,
    NotKnown,
)
from broadgauge.platforms.kubernetes.inventory_words import inventory_words, nodes_word

MAP_FILE = "nodename_ip_mapping.yaml"
CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9./_-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterExperiment:
    """What is written, and said."""

    text: str
    address_map: str | None
    """None: no network needs one."""
    missing: tuple[str, ...]
    """What could not be known."""


def cluster_experiment(
    inventory: Inventory, *, name: str, namespace: str, context: str | None
) -> ClusterExperiment:
    """`name` of the cluster, for the experiment's. `context`: None: the kubeconfig's current."""
    text = _Text(inventory=inventory, cluster=name, namespace=namespace, context=context)
    lines = "".join(f"{line}\n" for line in text.lines())
    devices = text.mapped_devices()
    return ClusterExperiment(
        text=lines,
        address_map=address_map(text.nodes, devices) if devices else None,
        missing=tuple(text.missing),
    )


@dataclass(slots=True, kw_only=True)
class _Text:
    inventory: Inventory
    cluster: str
    namespace: str
    context: str | None
    missing: list[str] = field(default_factory=list)
    networks: tuple[FoundNetwork, ...] = ()
    nodes: tuple[ClusterNode, ...] = ()

    def __post_init__(self) -> None:
        self.networks = found_networks(self.inventory, self.namespace)
        if not isinstance(self.inventory.nodes, NotKnown):
            self.nodes = _alike(self.inventory.nodes)

    @property
    def num_gpus(self) -> int:
        """Of each node that is used."""
        return self.nodes[0].num_gpus if self.nodes else 0

    def lines(self) -> Iterator[str]:
        yield from self._head()
        yield from self._kubernetes()
        yield from self._cluster()
        yield from self._networks()
        yield from self._workloads()

    def _head(self) -> Iterator[str]:
        yield _comment(f"For {self.cluster}, as its API describes it:")
        for line in inventory_words(self.inventory):
            yield _comment(f"  {line}")
        yield "# `broadgauge run FILE --dry-run` shows what it means, `broadgauge render FILE` what"
        yield "# would be sent, `broadgauge schema` all keys."
        yield f"name: on-{_slug(self.cluster) or 'this-cluster'}"
        yield "platform: kubernetes"
        for what, found in (
            ("nodes", self.inventory.nodes),
            ("networks", self.inventory.definitions),
            ("operators", self.inventory.operators),
            ("version", self.inventory.version),
        ):
            if isinstance(found, NotKnown) and found.may_be_there:
                self.missing.append(f"{what}: unknown, {found.why}")

    def _kubernetes(self) -> Iterator[str]:
        yield ""
        yield "kubernetes:"
        yield f"  namespace: {_value(self.namespace)}"
        if self.context is not None:
            yield f"  context: {_value(self.context)}"
        yield "  # With Python 3.10 or newer and torch, from where this cluster can pull it: not in"
        yield "  # the API, and yours to say."
        yield "  image: broadgauge:latest"
        self.missing.append("kubernetes.image: which image your pods run is not in the API")
        gpu = self.nodes[0].gpu_resource if self.nodes else None
        if gpu is not None and self.num_gpus and gpu != "nvidia.com/gpu":
            yield f"  gpu_resource: {_value(gpu)}"
        product = self.nodes[0].gpu_product if self.nodes else None
        if len({each.gpu_product for each in self._all_nodes() if each.num_gpus}) > 1 and product:
            yield "  # Nodes have several kinds of GPUs: these are the most."
            yield f"  node_selector: {{{_value(GPU_PRODUCT)}: {_value(product)}}}"
        taints = sorted({key for node in self.nodes for key in node.taints})
        if taints:
            yield "  # Taints of these nodes."
            yield f"  tolerations: [{', '.join(map(_value, taints))}]"

    def _all_nodes(self) -> Sequence[ClusterNode]:
        return () if isinstance(self.inventory.nodes, NotKnown) else self.inventory.nodes

    def _cluster(self) -> Iterator[str]:
        yield ""
        yield "cluster:"
        gpus, num_nodes = self.num_gpus, len(self.nodes)
        if not self.nodes:
            yield "  # No node is known: nodes x ranks a node are yours to say."
            self.missing.append("cluster.shapes: no usable node is known")
        else:
            such = f"{num_nodes} such {nodes_word(num_nodes)}"
            yield f"  # nodes x ranks a node; {such} here: {self._names()}"
        if gpus:
            shapes = [f"1x{gpus}", *(f"{n}x{gpus}" for n in (2, 4, 8) if n <= num_nodes)]
        else:
            shapes = ["1x1", "1x2" if num_nodes == 1 else "2x1"]
        yield f"  shapes: [{', '.join(shapes)}]"
        if not gpus:
            yield "  # No GPU is known to be allocatable: cores compute."
            yield "  device: cpu"

    def _names(self) -> str:
        names = [node.name for node in self.nodes]
        shown = ", ".join(names[:4])
        return shown if len(names) <= 4 else f"{shown}, …"

    def _networks(self) -> Iterator[str]:
        yield ""
        yield "networks:"
        yield "  # What every pod has."
        yield "  - {name: pod, kubernetes: pod}"
        for network in self.networks:
            yield from self._network(network)
        for left_out in out_of_reach(self.inventory, self.namespace):
            yield _comment(f"Left out: {left_out}", indent=2)
        self.missing += not_understood(self.inventory, self.namespace)
        yield from self._resources_alone()

    def _network(self, network: FoundNetwork) -> Iterator[str]:
        about = [network.plugin or "its plugin is not in the API"]
        about += [f"over {', '.join(network.devices)}"] if network.devices else []
        about += [f"addresses by {network.ipam}"] if network.ipam else []
        yield _comment(f"{network.name}: {'; '.join(about)}.", indent=2)
        for note in network.notes:
            yield from _wrapped(note)
        yield f"  - name: {_value(network.name)}"
        count = len(network.definitions)
        if count > 1:
            yield f"    nics_per_node: [1, {min(count, MAX_NICS_PER_NODE)}]"
        yield "    kubernetes:"
        yield "      attachment: existing"
        yield f"      definitions: {_list(network.definitions)}"
        if network.resources:
            yield f"      resources: {_list(network.resources)}"
        if network.transport is not None:
            yield f"      transport: {network.transport}"
        if network.is_mapped:
            yield from self._mapped(network)

    def _mapped(self, network: FoundNetwork) -> Iterator[str]:
        if network.devices:
            yield f"      devices: {_list(network.devices)}"
            yield f"      ipam: {{kind: address-map, map: {MAP_FILE}}}"
            self.missing += self._unmapped(network)
            return
        yield "      # Nobody gives it addresses, and which device it takes is not in the API:"
        yield "      # add `devices` and `ipam`, so that an address map can name it."
        self.missing.append(f"networks.{network.name}: who gives its addresses is not in the API")

    def _unmapped(self, network: FoundNetwork) -> list[str]:
        lacking = [
            node.name for node in self.nodes if only_address(node, self.mapped_devices()) is None
        ]
        if not lacking and self.nodes:
            return []
        of = f" of {', '.join(lacking[:4])}{', …' if len(lacking) > 4 else ''}" if lacking else ""
        return [f"{MAP_FILE}: addresses of {', '.join(network.devices)}{of} are not in the API"]

    def mapped_devices(self) -> tuple[str, ...]:
        """Whose addresses the map has, in the order of their interfaces."""
        found = (device for each in self.networks if each.is_mapped for device in each.devices)
        return tuple(dict.fromkeys(found))

    def _resources_alone(self) -> Iterator[str]:
        """RDMA and other devices that no definition leads to."""
        used = {each for network in self.networks for each in network.resources}
        found = Counter[str]()
        for node in self.nodes:
            for key, count in node.devices:
                if key not in used:
                    found[key] = max(found[key], count)
        if "vpc.amazonaws.com/efa" in found:
            del found["vpc.amazonaws.com/efa"]
            yield "  # AWS's Elastic Fabric Adapter asks for `kubernetes.memory_bytes` beside it:"
            yield "  # - {name: efa, kubernetes: {attachment: pod, profile: efa}}"
            self.missing.append("vpc.amazonaws.com/efa: say `memory_bytes`, then take it in")
        rdma = [key for key in shared_rdma(self.inventory, ()) if key in found]
        for key in rdma:
            yield from _wrapped(
                f"{key} (up to {found.pop(key)} a node) is a resource that no definition here "
                "names: add it as `resources` to the network whose devices it is, with `transport`."
            )
            self.missing.append(f"{key}: over which network its devices are is not in the API")
        if found:
            names = ", ".join(f"{key} ({count} a node)" for key, count in sorted(found.items()))
            yield from _wrapped(f"Further resources of these nodes: {names}.")

    def _workloads(self) -> Iterator[str]:
        yield ""
        yield "workloads:"
        yield "  - kind: collectives"
        yield "    ops: [all_reduce, all_gather, reduce_scatter]"
        sizes = "8 KiB, 1 MiB, 64 MiB, 1 GiB" if self.num_gpus else "64 KiB, 1 MiB, 8 MiB"
        yield f"    sizes: [{sizes}]"
        yield "  - kind: train"
        if self.num_gpus:
            yield "    # GPT-2 large's shape."
            yield "    model:"
            yield "      {layers: 36, hidden: 1280, heads: 20, vocabulary: 50257, seq_len: 1024}"
            yield "    strategy: fsdp"
            yield "    batch_per_rank: 2"
            yield "    dtype: bfloat16"
        else:
            yield "    model: {layers: 4, hidden: 256, heads: 4, seq_len: 64}"
            yield "    strategy: ddp"
            yield "    batch_per_rank: 1"
        yield ""
        yield "# How often each case's ranks are started: the repeat unit of every interval."
        yield "launches: 3"


def _alike(nodes: Sequence[ClusterNode]) -> tuple[ClusterNode, ...]:
    """The largest group of usable nodes with equal GPUs, those with GPUs first."""
    workers = [
        node for node in nodes if node.is_usable and not set(node.taints) & set(CONTROL_PLANE)
    ] or [node for node in nodes if node.is_usable]
    if not workers:
        return ()
    groups = Counter((node.num_gpus, node.gpu_product or "") for node in workers)
    best = max(groups, key=lambda each: (each[0] > 0, groups[each] * each[0], groups[each], each))
    found = [node for node in workers if (node.num_gpus, node.gpu_product or "") == best]
    return tuple(sorted(found, key=lambda node: node.name))


def _list(values: Sequence[str]) -> str:
    shown = [_value(each) for each in values]
    return shown[0] if len(shown) == 1 else f"[{', '.join(shown)}]"


def _value(text: str) -> str:
    """In YAML, whatever it holds; plain where it can't be anything else, in a list or map too."""
    return text if _PLAIN.fullmatch(text) and scalar(text) == text else quoted(text)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.")[:40].strip("-.")


def _wrapped(text: str, width: int = 92) -> Iterator[str]:
    """A comment of several lines, before an entry."""
    line = ""
    for word in text.split():
        if line and len(line) + len(word) + 1 > width:
            yield _comment(line, indent=2)
            line = ""
        line = f"{line} {word}".strip()
    if line:
        yield _comment(line, indent=2)


def _comment(text: str, indent: int = 0) -> str:
    """On one line, whatever the text holds; leading spaces are kept."""
    printable = "".join(each if each.isprintable() else " " for each in text)
    return f"{' ' * indent}# {printable.rstrip()}"
