"""Which experiment suits this cluster to begin with? Its text, its address map, what is missing,
and what is to be looked at.

Pure: from an inventory. What could not be known, or can't be used as it is, stands in comments.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from broadgauge.manifests.names import MOST_NAME_CHARACTERS
from broadgauge.manifests.yaml_text import yaml_text
from broadgauge.platforms.kubernetes.inventory.cluster_inventory import Inventory, NotKnown
from broadgauge.platforms.kubernetes.inventory.cluster_nodes import ClusterNode
from broadgauge.platforms.kubernetes.inventory.found_addresses import address_map
from broadgauge.platforms.kubernetes.inventory.found_networks import found_networks
from broadgauge.platforms.kubernetes.inventory.inventory_words import inventory_words, nodes_word
from broadgauge.platforms.kubernetes.inventory.networks_together import (
    NetworksTogether,
    mapped_devices,
)
from broadgauge.running.experiment_text import comment, slug, wrapped
from broadgauge.running.first_experiment import (
    LAUNCHES,
    OWN_SCRIPT,
    collectives_entry,
    train_entry,
)
from broadgauge.running.first_networks import MOST_NAMED, FirstNetworks
from broadgauge.running.first_nodes import MOST_PODS, FirstNodes, first_nodes
from broadgauge.specs.kubernetes.settings import ANY_IMAGE
from broadgauge.specs.machines.cluster import MAX_RANKS_PER_NODE
from broadgauge.wording.near_words import did_you_mean

_ANY_USER = 1000
_SHORT_NAME = "first"


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstOnCluster:
    """What is written, and said."""

    text: str
    address_map: str | None
    """None: no network needs one."""
    missing: tuple[str, ...]
    """What could not be known or used; the text has it, too."""
    notes: tuple[str, ...]
    """What is there and was taken for something, to be looked at; the text has it, too."""


def first_experiment_on_cluster(
    inventory: Inventory, *, cluster: str, namespace: str, context: str | None
) -> FirstOnCluster:
    """`cluster`: its name. `context`: of the kubeconfig, where it was named."""
    choice = _FirstText(inventory=inventory, cluster=cluster, namespace=namespace, context=context)
    body = tuple(choice.body())  # and with it what is missing, and the notes
    lines = (*choice.head(), *body, *LAUNCHES)
    return FirstOnCluster(
        text="".join(f"{line}\n" for line in lines),
        address_map=choice.address_map,
        missing=tuple(choice.missing),
        notes=tuple(choice.notes),
    )


@dataclass(slots=True, kw_only=True)
class _FirstText:
    inventory: Inventory
    cluster: str
    namespace: str
    context: str | None
    missing: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    placed: FirstNodes = field(init=False)
    found: NetworksTogether = field(init=False)

    def __post_init__(self) -> None:
        self.placed = first_nodes(self.inventory.known_nodes)
        num_pods = min(max(len(self.nodes), 1), MOST_PODS)
        self.found = NetworksTogether(nodes=self.nodes, num_pods=num_pods)
        for network in found_networks(self.inventory, self.namespace):
            self.found.add(network)

    @property
    def nodes(self) -> tuple[ClusterNode, ...]:
        """That pods are meant for."""
        return self.placed.chosen

    @property
    def num_gpus(self) -> int:
        """Of each node that is used."""
        return min(self.nodes[0].num_gpus, MAX_RANKS_PER_NODE) if self.nodes else 0

    @property
    def name(self) -> str:
        own = self.cluster
        if own.startswith("arn:"):  # EKS: the account's number, then the cluster's name
            own = own.rpartition("/")[2]
        return f"on-{slug(own) or 'this-cluster'}"

    @property
    def address_map(self) -> str | None:
        """Of those that are taken; else of the others, to be filled in."""
        left = (network for network, _ in self.found.left)
        devices = mapped_devices(self.found.taken) or mapped_devices(left)
        return address_map(self.nodes, devices) if devices else None

    def head(self) -> Iterator[str]:
        yield comment(f"For {self.cluster}, as its API describes it:")
        for line in inventory_words(self.inventory):
            yield from wrapped(f"- {line}", hanging=2)
        for title, listed in (("Missing", self.missing), ("To be looked at", self.notes)):
            if listed:
                yield "#"
                yield f"# {title}:"
            for line in listed:
                yield from wrapped(f"- {line}", hanging=2)
        yield "#"
        yield "# `broadgauge run FILE --dry-run` shows what it means, `broadgauge render FILE` what"
        yield "# would be sent, `broadgauge schema` all keys."
        yield f"name: {self.name}"
        yield "platform: kubernetes"

    def body(self) -> Iterator[str]:
        self._say_what_is_unknown()
        yield ""
        yield from self._kubernetes()
        yield ""
        yield from self._cluster()
        yield ""
        networks = FirstNetworks(
            inventory=self.inventory,
            namespace=self.namespace,
            found=self.found,
            missing=self.missing,
            notes=self.notes,
        )
        yield from networks.lines()
        yield ""
        yield "workloads:"
        yield from collectives_entry(on_gpus=self.num_gpus > 0)
        memory_bytes = min((node.gpu_memory_bytes or 0 for node in self.nodes), default=0)
        strategy = "fsdp" if self.num_gpus else "ddp"
        yield from train_entry(strategy, memory_bytes if self.num_gpus else None)
        yield from OWN_SCRIPT.splitlines()

    def _say_what_is_unknown(self) -> None:
        for what, found in (
            ("nodes", self.inventory.nodes),
            ("networks", self.inventory.definitions),
            ("SR-IOV policies", self.inventory.pools),
            ("operators", self.inventory.operators),
            ("version", self.inventory.version),
        ):
            if isinstance(found, NotKnown) and found.may_be_there:
                self.missing.append(f"{what}: unknown, {found.why}")
        if self.inventory.hidden_definitions is not None:
            self.missing.append(f"networks: {self.inventory.hidden_definitions}")
        if not self.inventory.has_namespace:
            near = did_you_mean(self.namespace, self.inventory.namespaces)
            hint = "" if near is None else f"; {near}"
            self.missing.append(f"kubernetes.namespace: {self.namespace} is not there{hint}")

    def _kubernetes(self) -> Iterator[str]:
        yield "kubernetes:"
        if self.context is not None:
            words = f"Of the context {self.context}. `run` takes the kubeconfig's current one: "
            yield from wrapped(f"{words}`kubectl config use-context` makes it that.", indent=2)
        yield from _entry("namespace", self.namespace)
        yield from self._short_name()
        yield "  # With Python 3.10 or newer and torch, where the nodes can pull it. PyTorch's own"
        yield "  # is a beginning; a release in place of `latest` keeps figures comparable."
        yield from _entry("image", ANY_IMAGE)
        self.missing.append(
            f"kubernetes.image: which one your pods run; {ANY_IMAGE} is a beginning"
        )
        if self.inventory.may_be_openshift:
            is_known = not isinstance(self.inventory.openshift, NotKnown)
            it = "OpenShift" if is_known else "if this is OpenShift, it"
            words = f"`run_as_user` is left out: {it} gives each namespace users of its own."
            if not is_known:
                words += " Elsewhere take it in: `run_as_user: 1000`."
            yield from wrapped(words, indent=2)
        else:
            yield "  # Not root, which many clusters refuse; another number will do as well."
            yield from _entry("run_as_user", _ANY_USER)
        yield from self._where()

    def _short_name(self) -> Iterator[str]:
        """Names of jobs have the workload's, the network's and the shape in them."""
        networks = (*self.found.taken, *(network for network, _ in self.found.left))
        longest = max(
            (len(each.name) + 8 * (len(each.definitions) > 1) for each in networks), default=3
        )
        room = MOST_NAME_CHARACTERS - len("-collectives-") - longest - len("-2x64")
        if len(self.name) > room:
            yield "  # With it the names of all objects begin, which have little room."
            yield from _entry("name", _SHORT_NAME)

    def _where(self) -> Iterator[str]:
        """What tells these nodes from others."""
        gpu = self.nodes[0].gpu_resource if self.nodes else None
        if gpu is not None and gpu != "nvidia.com/gpu":
            yield from _entry("gpu_resource", gpu)
        if self.placed.selector:
            yield "  # Nodes are of several kinds: pods are for these."
            yield from _entry("node_selector", self.placed.selector)
        if self.placed.tolerations:
            yield "  # Taints of these nodes."
            yield from _entry("tolerations", list(self.placed.tolerations))
        self.notes.extend(self.placed.unknown())

    def _cluster(self) -> Iterator[str]:
        yield "cluster:"
        gpus, num_nodes = self.num_gpus, len(self.nodes)
        if not self.nodes:
            why = self._why_no_nodes()
            yield from wrapped(f"{_sentence(why)}: nodes x ranks are yours to say.", indent=2)
            self.missing.append(f"cluster.shapes: {why}")
        else:
            such = f"{num_nodes} such {nodes_word(num_nodes)}"
            yield comment(f"nodes x ranks a node; {such} here: {self._names()}", indent=2)
        ranks = 1 if self.placed.is_gpu_shared else gpus or 1
        several = f"1x{2 * ranks}" if num_nodes == 1 and not gpus else f"{MOST_PODS}x{ranks}"
        has_several = num_nodes != 1 or not gpus
        yield f"  shapes: [1x{ranks}{f', {several}' if has_several else ''}]"
        if gpus:
            yield "  device: cuda"
        else:
            why = _sentence(self._why_no_gpus())
            yield from wrapped(f"{why}: cores compute.", indent=2)
            yield "  device: cpu"

    def _why_no_nodes(self) -> str:
        if isinstance(self.inventory.nodes, NotKnown):
            return "which nodes there are is unknown"
        if not self.inventory.nodes:
            return "the cluster has no node"
        return "no node of Linux is ready and open to pods"

    def _why_no_gpus(self) -> str:
        if not self.nodes:
            return "which GPUs pods would have is unknown"
        if any(node.num_gpus for node in self.inventory.known_nodes):
            return "the nodes with GPUs are not of Linux, not ready, or closed to pods"
        if self.placed.other_gpus:
            return f"GPUs offered as {', '.join(self.placed.other_gpus)} are not used here"
        return "no GPU is known to be allocatable"

    def _names(self) -> str:
        names = [node.name for node in self.nodes]
        return ", ".join(names[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]


def _entry(key: str, value: object) -> Iterator[str]:
    """Of `kubernetes`."""
    yield from (f"  {line}" for line in yaml_text({key: value}).splitlines())
