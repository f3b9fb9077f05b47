"""How long does a collective keep the links busy? t = α(ranks, path) + bytes × factor / β(path).

Bytes are counted a node, not a rank: the ranks of a node share its NICs. What was measured comes
first: a curve of this collective (curve_scaling.py), then a node's measured rate, then priors by
transport (link_rates.py); α and what small messages lose come from NCCL's own cost model
(nccl_model.py).
"""

import numpy as np

from broadgauge.catalog.busbw import bus_factor
from broadgauge.predict.case import Op
from broadgauge.predict.costs.curve_scaling import curve_s
from broadgauge.predict.costs.link_rates import hop_s, inside_rate, is_nvlink, is_rdma, node_rate
from broadgauge.predict.costs.nccl_model import Ring, collective_s
from broadgauge.predict.costs.pieces import CollectiveCost, CollectiveGroup
from broadgauge.predict.facts.arrays import Times
from broadgauge.predict.facts.columns import Columns


def node_bytes(op: Op, message_bytes: Times, group: CollectiveGroup) -> Times:
    """What a node sends to others, all groups that stand on it together.

    A ring leaves a node once for each group, whatever the number of its ranks there. All-to-all
    sends directly: each rank to all ranks elsewhere.
    """
    sent = message_bytes * bus_factor(op, group.ranks)
    if op == "all_to_all":
        elsewhere = group.ranks - group.ranks_per_node
        sent = message_bytes * group.ranks_per_node * elsewhere / group.ranks
    return np.where(group.nodes > 1, sent * group.groups_per_node, 0.0)


def _inside_factor(op: Op, group: CollectiveGroup) -> Times:
    """The same over links of a node: a ring's pass all of it on, all-to-all's what stays there."""
    if op == "all_to_all":
        return (group.ranks_per_node - 1) / group.ranks
    return bus_factor(op, group.ranks)


def price(op: Op, message_bytes: Times, group: CollectiveGroup, columns: Columns) -> CollectiveCost:
    """How long one such collective takes; `message_bytes` as nccl-tests counts it."""
    is_any = (message_bytes > 0) & (group.ranks > 1)
    is_across = group.nodes > 1
    leaving = node_bytes(op, message_bytes, group)
    inside = inside_rate(op, group, columns)
    inside_s = message_bytes * _inside_factor(op, group) / inside
    outside = node_rate(group, columns) / group.groups_per_node
    if op == "all_to_all":
        outside = (
            outside
            * (group.ranks - 1)
            / np.maximum(group.ranks_per_node * (group.ranks - group.ranks_per_node), 1.0)
        )
    ring = Ring(
        ranks=group.ranks,
        nodes=group.nodes,
        ranks_per_node=group.ranks_per_node,
        bus_rate=np.where(is_across, outside, inside),
        is_nvlink=is_nvlink(group, columns),
        is_rdma=is_rdma(columns),
        hop_s=hop_s(columns),
    )
    modelled_s = collective_s(op, message_bytes, ring)
    measured_s = curve_s(op, message_bytes, group, columns)
    whole_s = np.where(np.isnan(measured_s), modelled_s, measured_s)
    inside_s = np.where(np.isnan(measured_s), inside_s, np.minimum(inside_s, measured_s))
    is_inside = group.ranks_per_node > 1
    return CollectiveCost(
        intra_s=np.where(is_any & is_inside, np.where(is_across, inside_s, whole_s), 0.0),
        inter_s=np.where(is_any & is_across, whole_s, 0.0),
        inter_bytes=np.where(is_any, leaving, 0.0),
    )
