"""Does all that shapes a network reach the emulated links, and do the ranks use what is built?"""

from typing import Any

import pytest
from tests.platforms.launches import make_case

from broadgauge.agent.supervisor.launch_nodes import link_plan
from broadgauge.messages.launch_order import Mode
from broadgauge.platforms.launch_plan import interfaces_of, link_of
from broadgauge.specs.networks.network import Network, SlowPair

SHAPING: dict[str, Any] = {
    "rate_gbps": 2.0,
    "receive_rate_gbps": 0.5,
    "mtu_bytes": 9000,
    "delay_s": 0.02,
    "jitter_s": 0.01,
    "loss_ratio": 0.1,
    "slow_pairs": (SlowPair(nodes=(0, 1), rate_ratio=0.4),),
}
BUILT: dict[str, Any] = {"overlay": "vxlan", "nics_per_node": 3}
LABELS = {"name", "description", "environment", "nccl_seen_gbps", "found", "kubernetes"} | {
    "rate_inferred_from"
}
"""What the links know nothing of."""


def network(**changes: Any) -> Network:
    return Network(**{"name": "slow", "rate_gbps": 1.0, "delay_s": 0.015} | changes)


def test_every_field_of_a_network_is_a_label_or_shapes_its_links() -> None:
    assert set(Network.model_fields) == LABELS | SHAPING.keys() | BUILT.keys()


@pytest.mark.parametrize("name", [*SHAPING, *BUILT])
def test_a_change_reaches_the_supervisor(name: str) -> None:
    """Else a reshape between two trials would keep what the one before it had."""
    changed = network(**{name: (SHAPING | BUILT)[name]})
    before, after = (link_of(make_case("emulated", network=each)) for each in (network(), changed))
    assert before is not None
    assert after is not None
    assert before != after
    assert (link_plan(before) != link_plan(after)) == (name in SHAPING)


@pytest.mark.parametrize(
    ("changes", "interfaces"),
    [
        ({}, ("eth0",)),
        ({"nics_per_node": 3}, ("eth0", "eth1", "eth2")),
        ({"overlay": "vxlan", "nics_per_node": 2}, ("vxlan0", "vxlan1")),
    ],
)
def test_ranks_use_the_interfaces_that_are_built(
    changes: dict[str, Any], interfaces: tuple[str, ...]
) -> None:
    case = make_case("emulated", network=network(**changes))
    assert interfaces_of(case, Mode.NAMESPACES) == interfaces
    assert interfaces_of(case, Mode.PLAIN) == ("lo",)


def test_one_node_has_no_link_and_one_nic() -> None:
    case = make_case("emulated", nodes=1, network=network(nics_per_node=2, overlay="vxlan"))
    assert link_of(case) is None
    assert interfaces_of(case, Mode.NAMESPACES) == ("eth0",)
