"""A supervisor whose shaped links also delay and lose, as `delaying_supervisor.py JSON FD`.

JSON: `delay_s` in each direction, `loss_ratio` and `seed`; perhaps `slow_from_gbps`, the rate above
which a shaped link does neither.
"""

# ruff: noqa: E402  the folder of the tests must be found first

import json
import math
import sys
from pathlib import Path
from typing import Any

sys.path[0] = str(Path(__file__).parents[3])

from tests.platforms.emulated.tap_forwarder import DelayedCable

from broadgauge.agent.emulated.nodes import EmulatedCluster, build_cluster
from broadgauge.agent.emulated.shaping import LinkPlan
from broadgauge.agent.supervisor import __main__ as supervisor
from broadgauge.agent.supervisor import launch_nodes

WISHES = json.loads(sys.argv.pop(1))
shape = EmulatedCluster.shape


def build_with_cable(*arguments: Any, **options: Any) -> EmulatedCluster:
    cluster = build_cluster(*arguments, **options)
    cable = DelayedCable(cluster.nodes[0].nics[0].ingress.netlink, seed=WISHES["seed"])

    def shape_and_delay(self: EmulatedCluster, link: LinkPlan) -> None:
        shape(self, link)
        if link.rate_gbps is None or link.rate_gbps > WISHES.get("slow_from_gbps", math.inf):
            cable.set(delay_s=0.0, loss_ratio=0.0)
        else:
            cable.set(delay_s=WISHES["delay_s"], loss_ratio=WISHES["loss_ratio"])

    EmulatedCluster.shape = shape_and_delay  # type: ignore[method-assign]
    return cluster


launch_nodes.build_cluster = build_with_cable
sys.exit(supervisor.main())
