"""From where to where may the rate between the nodes of a case lie?"""

from dataclasses import replace

import numpy as np

from broadgauge.predict.case import TrainingCase
from broadgauge.predict.costs.groups import group_of
from broadgauge.predict.costs.link_rates import headroom_ratio, node_rate, prior_spread_ratio
from broadgauge.predict.facts.columns import columns_of
from broadgauge.predict.facts.knowledge import Knowledge
from broadgauge.predict.intervals.uncertainty import WORDS

NETWORK_TERMS = frozenset(WORDS[name][0] for name in ("network-rdma", "network-sockets"))
"""What is uncertain of a case whose interval rests on its network."""


def rate_range_gbyte_per_s(
    case: TrainingCase, knowledge: Knowledge | None = None
) -> tuple[float, float] | None:
    """GB/s that a collective of two nodes may get out of each, in eight of ten cases; never more
    than the NICs' nominal rate.

    None: it was measured, or intervals know it from published steps.
    """
    columns = columns_of((case,), knowledge)
    ratio = float(prior_spread_ratio(columns)[0])
    if case.nodes < 2 or np.isclose(ratio, 1.0):
        return None
    group = group_of("data", columns)
    pair = replace(group, nodes=np.minimum(2.0, group.nodes))
    rate = float(node_rate(pair, columns)[0]) / 1e9
    return rate / ratio, rate * min(ratio, float(headroom_ratio(pair, columns)[0]))
