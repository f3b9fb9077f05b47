"""How many bytes a second do links carry, where nobody has measured them?"""

import functools
import math

import numpy as np

from broadgauge.catalog.gpus import Gpu
from broadgauge.catalog.networks import TransportPrior, known_transports
from broadgauge.predict.case import RDMA_TRANSPORTS, Op, Transport
from broadgauge.predict.costs.pieces import CollectiveGroup
from broadgauge.predict.costs.slowest import largest_deviate
from broadgauge.predict.facts.arrays import Times
from broadgauge.predict.facts.columns import Columns
from broadgauge.predict.facts.fabric_columns import TRANSPORTS

RING_RATIO = 0.8
PAIR_RATIO = 0.71
"""Of NVLink's one-way rate that a ring's busbw reaches: 367 to 370 of 450 on 8 H100 or H200, 232 to
235 of 300 on 8 A100, 85.5 of 100 on two A100 of a board of four; between two Hopper GPUs 312 to
324. Source: catalog/busbw.yaml and catalog/paths.yaml, which name theirs."""
NVLS_RATIO = {"hopper": 0.68, "blackwell": 0.61}
"""Of what the NVLink switch could do by adding up and multiplying: busbw of 2(n−1)/(n+1) times the
one-way rate. 363, 414, 436, 460, 473 of 4 to 8 H200 are 0.67 to 0.69 of it, 673 and 842 of 4 and 8
B200 0.62 and 0.60. Source: stas00/ml-engineering, network/README.md; coreweave/nccl-tests."""
PCIE_RATIO = 0.45
"""Of a slot's one-way rate that a ring's busbw reaches: 14.4 of 31.5 GB/s between two A100, 27.2 of
63 between two H200 through the host's memory. Source: catalog/paths.yaml."""
TYPICAL_GPU_GBPS: dict[str, float] = {
    "volta": 50.0,
    "ampere": 200.0,
    "hopper": 400.0,
    "blackwell": 400.0,
}
"""Of an NVLink node's NICs, a GPU's part, where the rate isn't stated: DGX-1 and DGX-2 (4 × 100 for
8, 8 × 100 for 16), DGX A100 (8 × 200), DGX H100 and HGX B200 hosts (8 × 400). Source: NVIDIA's
system user guides; catalog/nodes.yaml, where some clouds have a quarter of it."""
LINK_LOG_SD = 0.215
"""Spread of what links between virtual NICs of one cluster carry: 40 pairs of interfaces of five
nodes, 4.88 to 13.1 Gbit/s. Source: foundation-model-stack/multi-nic-cni, connection-check."""
TYPICAL_OTHER_GBPS = 100.0
"""Of a node of PCIe GPUs, and of Ethernet beside the GPUs' own network. Source: catalog/nodes.yaml
(g5, gx3 with L40S)."""


def inside_rate(op: Op, group: CollectiveGroup, columns: Columns) -> Times:
    """byte/s of busbw inside a node."""
    ranks = np.maximum(2.0, group.ranks_per_node).astype(np.int64)
    boards = columns.gpus_per_node.astype(np.int64)
    codes = (columns.gpu_index * 4096 + boards) * 4096 + ranks
    unique, index = np.unique(codes, return_inverse=True)
    rates = []
    for code in unique.tolist():
        pair, num_ranks = divmod(code, 4096)
        gpu_index, board = divmod(pair, 4096)
        rates.append(link_rate(columns.gpus[gpu_index], num_ranks, board, op))
    return np.asarray(np.array(rates)[index.ravel()] * columns.link_rate_ratio)


def is_nvlink(group: CollectiveGroup, columns: Columns) -> Times:
    """1 where a group's ranks on a node are joined by NVLink."""
    ranks = np.maximum(2.0, group.ranks_per_node)
    joined = [_largest_board(gpu) for gpu in columns.gpus]
    return np.where(np.array(joined)[columns.gpu_index] >= ranks, 1.0, 0.0)


def _is_optional(gpu: Gpu) -> bool:
    """A bridge over two cards is bought beside them; what doesn't say so has none."""
    boards = () if gpu.nvlink is None else gpu.nvlink.boards
    return gpu.form == "pcie" and all(board.topology == "bridge" for board in boards)


def _largest_board(gpu: Gpu) -> float:
    if gpu.nvlink is None or _is_optional(gpu):
        return 0.0
    return float(max(board.gpus for board in gpu.nvlink.boards))


def link_rate(gpu: Gpu, num_ranks: int, board_gpus: int, op: Op) -> float:
    """byte/s of busbw that each of these GPUs of one node gets."""
    one_way = None
    if gpu.generation in NVLS_RATIO and board_gpus < 4:
        board_gpus = 8  # hosts of two or three are parts of one with a switch
    if gpu.nvlink is not None and not _is_optional(gpu):
        one_way = gpu.nvlink.one_way_gbyte_per_s(num_ranks, board_gpus)
    if one_way is None or gpu.nvlink is None:
        return gpu.pcie_gbyte_per_s * PCIE_RATIO * 1e9
    is_pair = num_ranks == 2 and one_way == gpu.nvlink.gbyte_per_s
    ring = one_way * (PAIR_RATIO if is_pair else RING_RATIO)
    is_switch = gpu.nvlink.board(board_gpus).topology == "nvswitch"
    if op == "all_reduce" and is_switch and gpu.generation in NVLS_RATIO:
        gain = 2 * (num_ranks - 1) / (num_ranks + 1)
        ring = max(ring, one_way * gain * NVLS_RATIO[gpu.generation])
    return ring * 1e9


@functools.cache
def _prior(transport: Transport) -> TransportPrior:
    """The catalog's; what isn't stated is taken for InfiniBand."""
    name = "infiniband" if transport in ("none", "unknown") else transport
    return next(entry for entry in known_transports() if entry.name == name)


def hop_s(columns: Columns) -> Times:
    """A small message between two nodes: what the case says, else its transport's prior."""
    usual = np.array([_prior(transport).latency_s.value for transport in TRANSPORTS])
    return np.where(
        np.isnan(columns.fabric.latency_s),
        usual[columns.fabric.transport_index],
        columns.fabric.latency_s,
    )


def is_rdma(columns: Columns) -> Times:
    """1 where the NIC reads and writes the GPUs' memory; what isn't stated is taken for that."""
    known = [
        1.0 if transport in RDMA_TRANSPORTS or transport in ("none", "unknown") else 0.0
        for transport in TRANSPORTS
    ]
    return np.array(known)[columns.fabric.transport_index]


def node_gbps(columns: Columns) -> Times:
    """Nominal rate of a node; where it isn't stated, that of a usual node with such GPUs."""
    usual = [
        TYPICAL_GPU_GBPS.get(gpu.generation, 0.0)
        if gpu.nvlink is not None and gpu.form in ("sxm", "superchip")
        else 0.0
        for gpu in columns.gpus
    ]
    of_nodes = np.array(usual)[columns.gpu_index] * columns.gpus_per_node
    of_nodes = np.where((of_nodes > 0) & (is_rdma(columns) > 0), of_nodes, TYPICAL_OTHER_GBPS)
    said = columns.fabric.node_gbps
    return np.where(np.isnan(said), of_nodes, said)


def node_rate(group: CollectiveGroup, columns: Columns) -> Times:
    """byte/s that collectives get out of a node: measured, else what the network's own entry says,
    else what the transport usually gives.

    Sockets are copied by the processes that own them, so each communicator of a node has a limit
    of its own until the NICs are full. Source: catalog/transports.yaml, by transport.
    """
    nominal = node_gbps(columns)
    prior = np.zeros(len(columns))
    for index, transport in enumerate(TRANSPORTS):
        mask = columns.fabric.transport_index == index
        if mask.any():
            prior[mask] = _prior_rate(
                transport,
                nominal[mask],
                group.groups_per_node[mask],
                columns.fabric.node_gbps[mask],
            )
    prior = prior * slowest_link_ratio(group, columns)
    of_rings = columns.fabric.stated_ring_rate * group.groups_per_node
    stated = np.minimum(columns.fabric.stated_node_rate, of_rings)
    prior = np.where(np.isnan(stated), prior, stated)
    measured = columns.fabric.measured_node_rate
    return np.where(np.isnan(measured), prior, measured) * columns.node_rate_ratio


def headroom_ratio(group: CollectiveGroup, columns: Columns) -> Times:
    """How many times what this group's collectives are taken to get out of a node is its nominal
    rate? At least 1; infinite where no nominal rate is stated."""
    nominal = columns.fabric.node_gbps * 1e9 / 8
    ratio = np.maximum(1.0, nominal / node_rate(group, columns))
    return np.where(np.isnan(ratio), np.inf, ratio)


def prior_spread_ratio(columns: Columns) -> Times:
    """By what factor may a node's rate be off, either way, in eight of ten cases?

    Where only the way of sending is known, and that is no RDMA, or the network's own entry says
    from where to where; 1: measured, or RDMA of a nominal rate, which intervals know from published
    steps. Source: catalog/transports.yaml, low and high.
    """
    by_transport = [_spread_ratio(transport) for transport in TRANSPORTS]
    ratio = np.array(by_transport)[columns.fabric.transport_index]
    stated = columns.fabric.stated_spread_ratio
    ratio = np.where(np.isnan(stated), ratio, stated)
    is_measured = ~np.isnan(columns.fabric.measured_node_rate)
    if columns.fabric.has_curves:
        is_measured |= np.array([bool(case.fabric.curves) for case in columns.cases])
    return np.where(is_measured, 1.0, ratio)


@functools.cache
def _spread_ratio(transport: Transport) -> float:
    if transport in RDMA_TRANSPORTS or transport in ("none", "unknown"):
        return 1.0
    entry = _prior(transport)
    spread = entry.rings[-1] if entry.rings else entry.typical_gbyte_per_s or entry.typical_ratio
    assert spread is not None, "a transport without a rate"
    return math.sqrt(spread.high / spread.low)


def slowest_link_ratio(group: CollectiveGroup, columns: Columns) -> Times:
    """By how much is the slowest link of a ring of n nodes below that of a ring of two?

    A ring waits for its slowest link. Where the hypervisor or encapsulation limits a link and not
    the wire, links differ. Source: Blom 1958, the expected largest of n normal deviates.
    """
    differs = [_prior(transport).typical_gbyte_per_s is not None for transport in TRANSPORTS]
    nodes, index = np.unique(np.maximum(2.0, group.nodes), return_inverse=True)
    largest = np.array([largest_deviate(int(number)) for number in nodes])
    ratio = np.exp(-LINK_LOG_SD * (largest - largest_deviate(2)))[index.ravel()]
    return np.where(np.array(differs)[columns.fabric.transport_index], ratio, 1.0)


def _prior_rate(transport: Transport, nominal: Times, communicators: Times, said: Times) -> Times:
    """byte/s by transport; `said` is NaN where no nominal rate is known."""
    entry = _prior(transport)
    rate = np.full(len(nominal), np.inf)
    if entry.typical_ratio is not None:
        rate = np.minimum(rate, entry.typical_ratio.value * nominal / 8 * 1e9)
    if entry.typical_gbyte_per_s is not None:
        wire = np.where(np.isnan(said), np.inf, 0.95 * said / 8 * 1e9)
        rate = np.minimum(wire, entry.typical_gbyte_per_s.value * 1e9)
    for low_gbps, ring in zip(
        (0.0, *(ring.up_to_gbps for ring in entry.rings)), entry.rings, strict=False
    ):
        is_such = (nominal > low_gbps) & (nominal <= max(ring.up_to_gbps, low_gbps))
        limit = ring.value * communicators * 1e9
        rate = np.where(is_such, np.minimum(rate, limit), rate)
    return rate
