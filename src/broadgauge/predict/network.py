"""How long does a collective keep the links busy? t = α(ranks, path) + bytes × factor / β(path).

Bytes are counted a node, not a rank: the ranks of a node share its NICs.
"""

import functools
from typing import Literal

import numpy as np

from broadgauge.catalog.gpus import Gpu, find_gpu_named
from broadgauge.predict.case import RDMA_TRANSPORTS, Fabric, Transport
from broadgauge.predict.columns import Columns
from broadgauge.predict.costs import CollectiveCost, Group
from broadgauge.predict.curves import measured_s
from broadgauge.predict.timeline import Times

Op = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv"]

RDMA_RATIO = 0.8
SOCKET_RATIO = 0.45
OVERLAY_GBYTE_PER_S = 0.4
UNSTATED_NODE_GBPS = {"volta": 100.0, "ampere": 800.0, "hopper": 3200.0, "blackwell": 3200.0}
NVLINK_RATIO = 0.78
PCIE_RATIO = 0.6
LATENCY_S: dict[Transport, float] = {
    "none": 2e-6,
    "infiniband": 14e-6,
    "roce": 14e-6,
    "efa": 25e-6,
    "sriov-tcp": 30e-6,
    "tcp": 40e-6,
    "virtio": 60e-6,
    "overlay": 90e-6,
    "unknown": 14e-6,
}


def traffic_factor(op: Op, ranks: Times) -> Times:
    """Bytes that a rank of a ring sends, over the message's size as nccl-tests defines it.

    Source: Thakur, Rabenseifner, Gropp 2005; Patarasuk and Yuan 2009; nccl-tests, PERFORMANCE.md.
    """
    share = (ranks - 1) / ranks
    match op:
        case "all_reduce":
            return 2 * share
        case "send_recv":
            return np.asarray(np.minimum(ranks - 1, 1.0))
        case _:
            return share


@functools.lru_cache(maxsize=4096)
def node_rate(fabric: Fabric, generation: str) -> float:
    """byte/s that a collective gets out of a node."""
    if fabric.measured_node_gbyte_per_s is not None:
        return fabric.measured_node_gbyte_per_s * 1e9
    gbps = fabric.node_gbps or UNSTATED_NODE_GBPS.get(generation, 100.0)
    if fabric.transport in RDMA_TRANSPORTS or fabric.transport in {"unknown", "none"}:
        return gbps / 8 * RDMA_RATIO * 1e9
    if fabric.transport == "overlay":
        return min(gbps / 8, OVERLAY_GBYTE_PER_S) * 1e9
    return gbps / 8 * SOCKET_RATIO * 1e9


@functools.lru_cache(maxsize=4096)
def link_rate(gpu_name: str, num_gpus: int, board_gpus: int) -> float:
    """byte/s of busbw that a GPU gets to others of its node."""
    gpu: Gpu = find_gpu_named(gpu_name)
    rate = None
    if gpu.nvlink is not None:
        rate = gpu.nvlink.one_way_gbyte_per_s(num_gpus, board_gpus)
    if rate is None:
        return gpu.pcie_gbyte_per_s * PCIE_RATIO * 1e9
    return rate * NVLINK_RATIO * 1e9


def price(op: Op, message_bytes: Times, group: Group, columns: Columns) -> CollectiveCost:
    """How long one such collective takes; `message_bytes` as nccl-tests counts it.

    Where the fabric has a curve of it, that is the answer.
    """
    sent = message_bytes * traffic_factor(op, group.ranks)
    rates = _rates(columns, group)
    is_inside = group.ranks_per_node > 1
    is_across = group.nodes > 1
    steps = 2 if op == "all_reduce" else 1
    intra = steps * (group.ranks_per_node - 1) * 3e-6 + sent / rates[0]
    hops = np.ceil(np.log2(np.maximum(group.nodes, 2)))
    leaving = sent * group.groups_per_node
    if op == "all_to_all":
        leaving = leaving * group.ranks_per_node * (1 - 1 / group.nodes)
    inter = steps * hops * rates[2] + leaving / rates[1]
    is_any = (message_bytes > 0) & (group.ranks > 1)
    measured = measured_s(op, message_bytes, group, columns)
    is_known = ~np.isnan(measured)
    intra = np.where(is_known, np.where(is_across, 0.0, measured), intra)
    inter = np.where(is_known, measured, inter)
    return CollectiveCost(
        intra_s=np.where(is_inside & is_any, intra, 0.0),
        inter_s=np.where(is_across & is_any, inter, 0.0),
        inter_bytes=np.where(is_across & is_any, leaving, 0.0),
    )


def _rates(columns: Columns, group: Group) -> tuple[Times, Times, Times]:
    """byte/s inside and out of a node, and the latency between nodes."""
    inside = [
        link_rate(case.gpu, max(2, int(ranks)), case.gpus_per_node)
        for case, ranks in zip(columns.cases, group.ranks_per_node, strict=True)
    ]
    outside = [
        node_rate(case.fabric, columns.gpus[index].generation)
        for case, index in zip(columns.cases, columns.gpu_index, strict=True)
    ]
    latency = [case.fabric.latency_s or LATENCY_S[case.fabric.transport] for case in columns.cases]
    return np.array(inside), np.array(outside), np.array(latency)
