"""How long are a collective's bytes under way? Rough: for plans and the remaining time.

Constants marked "measured" were seen once between emulated nodes of one machine; the others are
guesses, and nothing but waiting rests on them.
"""

from broadgauge.catalog.traffic import gloo_node_bytes, grouped_node_bytes, ring_node_bytes
from broadgauge.messages.rank import RankGroup
from broadgauge.specs.case import Case
from broadgauge.specs.networks.network import Network
from broadgauge.specs.workloads.workload import CollectiveOp

PROCESS_GROUP_S = {"gloo": 0.3, "nccl": 2.0}
LATENCY_S = {"gloo": 5e-4, "nccl": 5e-5}
_UNSHAPED_GBYTE_PER_S = {"gloo": 0.35, "nccl": 3.4}
"""Between emulated nodes (measured: 2.8 Gbit/s over Gloo, 3.4 GB/s over NCCL)."""
_ONE_NODE_GBYTE_PER_S = {"gloo": 0.7, "nccl": 200.0}


def transfer_s(
    case: Case, op: CollectiveOp, size_bytes: int, group: RankGroup | None = None
) -> float:
    """How long are one collective's bytes under way on the busiest node's link, or between the
    ranks of one node? Each of the groups makes it; None: all ranks do. Source: catalog/traffic.py;
    NCCL is taken for a ring, and so are groups."""
    if group is not None:
        return _grouped_s(case, op, size_bytes, group)
    node_bytes = gloo_node_bytes if case.backend == "gloo" else ring_node_bytes
    ranks_per_node = 1 if case.nodes == 1 else case.ranks_per_node
    crossing = node_bytes(op, case.world_size, size_bytes, ranks_per_node=ranks_per_node)
    return crossing / (_rate_gbyte_per_s(case, case.link) * 1e9)


def _grouped_s(case: Case, op: CollectiveOp, size_bytes: int, group: RankGroup) -> float:
    """Groups inside of nodes send between no nodes."""
    crossing = grouped_node_bytes(
        op, group, case.world_size, size_bytes, ranks_per_node=case.ranks_per_node
    )
    if crossing:
        return crossing / (_rate_gbyte_per_s(case, case.link) * 1e9)
    inside = ring_node_bytes(op, group.size, size_bytes)
    return inside / (_ONE_NODE_GBYTE_PER_S[case.backend] * 1e9)


def _rate_gbyte_per_s(case: Case, network: Network | None) -> float:
    if network is None:
        return _ONE_NODE_GBYTE_PER_S[case.backend]
    unshaped = _UNSHAPED_GBYTE_PER_S[case.backend]
    payload_gbps = network.payload_rate_gbps
    return unshaped if payload_gbps is None else min(unshaped, payload_gbps / 8)
