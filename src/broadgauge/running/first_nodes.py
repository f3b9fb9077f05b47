"""Which of a cluster's nodes is a first experiment for, and how are they told from others?"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from broadgauge.platforms.kubernetes.inventory.cluster_nodes import (
    KIND_LABELS,
    SYSTEM_LABELS,
    ClusterNode,
)

_CONTROL_PLANE = {"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"}
_MOST_TOLERATIONS = 32
MOST_PODS = 2
"""To begin with: two nodes have what a network costs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstNodes:
    """Alike in their GPUs, and open to pods."""

    all: tuple[ClusterNode, ...]
    """Of the cluster."""
    chosen: tuple[ClusterNode, ...]

    @property
    def selector(self) -> dict[str, str]:
        """Labels that the others have not; empty: there are no others, or none tells them."""
        return self._told_apart[0]

    @property
    def tolerations(self) -> tuple[str, ...]:
        found = sorted({key for node in self.chosen for key in node.taints})
        return tuple(found[:_MOST_TOLERATIONS])

    @property
    def other_gpus(self) -> tuple[str, ...]:
        """Resources of GPUs that are not used, of nodes that might be."""
        return tuple(sorted({key for node in _workers(self.all) for key in node.other_gpus}))

    @property
    def is_gpu_shared(self) -> bool:
        """May several ranks of a node be on one GPU?"""
        return bool(self.chosen) and self.chosen[0].num_gpus > 0 and self.chosen[0].is_gpu_shared

    def unknown(self) -> Iterator[str]:
        """What is to be looked at."""
        if self.chosen and self.chosen[0].num_gpus:
            yield from self._unknown_kinds()
        if self.is_gpu_shared:
            kind = self.chosen[0].gpu_kind
            yield (
                f"cluster.shapes: GPUs of these nodes{f' ({kind})' if kind else ''} are shared or "
                "parts of GPUs: one rank a node, since NCCL refuses several on one GPU"
            )
        if self.other_gpus:
            yield f"cluster.device: GPUs offered as {', '.join(self.other_gpus)} are not used here"
        foreign = {key for node in self.chosen for key in node.foreign_taints}
        told = [key for key in self.tolerations if key in foreign]
        if told:
            keep = "keeps" if len(told) == 1 else "keep"
            yield (
                f"kubernetes.tolerations: {', '.join(told)} {keep} pods off these nodes: whether "
                "yours may be there is not in the API"
            )

    def _unknown_kinds(self) -> Iterator[str]:
        _, others = self._told_apart
        beside = ""
        if others:
            kinds = sorted({each.gpu_kind or "unknown GPUs" for each in others})
            beside = f"pods may come to nodes with {', '.join(kinds)}, too"
        if self.chosen[0].gpu_kind is None:
            yield (
                "kubernetes.node_selector: kind of GPU unknown: no label of these nodes tells it, "
                f"and they may differ{'; ' * bool(beside)}{beside}"
            )
        elif beside:
            yield (
                "kubernetes.node_selector: no label tells these nodes from some of another kind: "
                f"{beside}"
            )

    @property
    def _told_apart(self) -> tuple[dict[str, str], list[ClusterNode]]:
        """By which labels, and others that none tells."""
        if not self.chosen:
            return {}, []
        first, others, found = self.chosen[0], self._others, dict[str, str]()
        own = dict(first.kinds)
        for label in _labels(first):
            told = [each for each in others if dict(each.kinds).get(label) != own.get(label)]
            if label in own and told:
                found[label] = own[label]
                others = [each for each in others if each not in told]
        return found, others

    @property
    def _others(self) -> list[ClusterNode]:
        """Of another kind, that the same pods could come to."""
        if not self.chosen:
            return []
        resource, own = self.chosen[0].gpu_resource, _kind(self.chosen[0])
        return [
            each
            for each in self.all
            if _kind(each) != own and (resource is None or each.gpu_resource == resource)
        ]


def first_nodes(nodes: Sequence[ClusterNode]) -> FirstNodes:
    """The largest group of usable nodes that are alike: those with GPUs first, then those that
    no taint keeps for somebody, where they are enough."""
    groups: defaultdict[tuple[int, tuple[str, ...]], list[ClusterNode]] = defaultdict(list)
    for node in sorted(_workers(nodes), key=lambda each: each.name):
        groups[node.num_gpus, _kind(node)].append(node)
    if not groups:
        return FirstNodes(all=tuple(nodes), chosen=())
    best = max(
        groups,
        key=lambda each: (
            each[0] > 0,
            len(_open(groups[each])) >= MOST_PODS,
            len(groups[each]) * each[0],
            len(groups[each]),
            each,
        ),
    )
    found = _open(groups[best])
    return FirstNodes(
        all=tuple(nodes), chosen=tuple(found if len(found) >= MOST_PODS else groups[best])
    )


def _workers(nodes: Sequence[ClusterNode]) -> list[ClusterNode]:
    """Without the control plane, unless GPUs are nowhere else."""
    usable = [node for node in nodes if node.is_usable and node.other_system is None]
    workers = [node for node in usable if not set(node.taints) & _CONTROL_PLANE]
    if any(node.num_gpus for node in usable) and not any(node.num_gpus for node in workers):
        return usable
    return workers or usable


def _open(nodes: Sequence[ClusterNode]) -> list[ClusterNode]:
    return [node for node in nodes if not node.foreign_taints]


def _kind(node: ClusterNode) -> tuple[str, ...]:
    told = dict(node.kinds)
    shared = str(node.num_gpus > 0 and node.is_gpu_shared)
    return (node.gpu_resource or "", shared, *(told.get(label, "") for label in _labels(node)))


def _labels(node: ClusterNode) -> tuple[str, ...]:
    """Which tell its kind: without GPUs machines of several types are taken for alike."""
    return KIND_LABELS if node.num_gpus else SYSTEM_LABELS
