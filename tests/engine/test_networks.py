"""Which networks can be had here, and is what no link needs asked for nowhere?"""

from dataclasses import replace
from typing import Any

import pytest
from tests.engine.making import TRAIN, a_machine, an_experiment, devices_of

from broadgauge.engine.plan import make_plan, on_local_platform
from broadgauge.platforms.devices import emulated_devices
from broadgauge.report.lines.opening import plan_lines
from broadgauge.specs.errors import InputError
from broadgauge.specs.networks.network import Network
from broadgauge.specs.plan import Plan

DELAYED: dict[str, Any] = {"name": "far", "rate_gbps": 1, "delay_s": "1 ms"}
SLOW: dict[str, Any] = {"name": "bad", "rate_gbps": 1}


def a_pair(*nodes: int) -> dict[str, Any]:
    return {**SLOW, "slow_pairs": [{"nodes": nodes, "rate_ratio": 0.4}]}


@pytest.mark.parametrize("network", [a_pair(1, 3), DELAYED])
def test_links_that_are_not_built_refuse_nothing(network: dict[str, Any]) -> None:
    """Nodes were refused: what is left has one node."""
    experiment = an_experiment(
        networks=[network], workloads=[TRAIN], cluster={"shapes": ["4x1"], "device": "cpu"}
    )
    plan = make_plan(
        on_local_platform(experiment, emulated_devices(a_machine())), devices_of(a_machine())
    )
    assert [case.shape for case in plan.cases] == ["1x4"]


def test_a_slow_pair_of_a_node_that_no_shape_has_is_refused() -> None:
    experiment = an_experiment(networks=[a_pair(1, 3)], cluster={"shapes": ["2x1"]})
    with pytest.raises(InputError, match="there is no node 3: the largest shape has 2"):
        make_plan(experiment, devices_of(a_machine()))


def test_the_opening_shows_the_networks_as_they_are_built() -> None:
    experiment = an_experiment(
        networks=[DELAYED], best_effort=True, workloads=[TRAIN], cluster={"shapes": ["2x1"]}
    )
    for can_delay, words in ((False, "no added delay"), (True, "delay")):
        plan = make_plan(experiment, devices_of(replace(a_machine(), can_delay=can_delay)))
        (line,) = [
            line for line in plan_lines(experiment, plan) if line.startswith("           network ")
        ]
        assert line.endswith(words)
        assert ("no added" in line) != can_delay


POD: dict[str, Any] = {"name": "pod", "found": {"subnet": "10.0.0.0/16"}}


def test_nodes_that_are_emulated_have_no_network_to_be_found() -> None:
    experiment = an_experiment(networks=[POD], cluster={"shapes": ["2x1"]})
    with pytest.raises(InputError, match=r"networks\.pod: it is another platform's") as caught:
        make_plan(experiment, devices_of(a_machine()))
    assert "hint: say beside it how to emulate it" in str(caught.value)


def test_a_network_found_elsewhere_is_left_out_beside_others_with_a_note() -> None:
    experiment = an_experiment(networks=[POD, SLOW], cluster={"shapes": ["1x1", "2x1"]})
    plan = make_plan(experiment, devices_of(a_machine()))
    assert {case.plain_network_name for case in plan.cases if case.nodes == 2} == {"bad"}
    assert "network pod is left out on emulated: it is another platform's, and not emulated" in (
        plan.notes
    )


def test_an_entry_with_two_faces_is_emulated_as_if_it_had_one() -> None:
    """Its case is the one it was before the other face was written down."""
    both = an_experiment(networks=[{**SLOW, "found": {"interface": "ens5"}}])
    one = an_experiment(networks=[SLOW])
    plans = [make_plan(each, devices_of(a_machine())) for each in (both, one)]
    assert [case.key for case in plans[0].cases] == [case.key for case in plans[1].cases]


def test_what_is_found_keeps_nothing_that_would_be_set() -> None:
    [network] = an_experiment(networks=[{**DELAYED, **POD}]).networks
    assert isinstance(network, Network)
    found = network.as_found_on("hosts")
    assert (found.rate_gbps, found.delay_s, found.node_rate_gbps) == (None, 0.0, None)
    assert found.label == "pod, found at 10.0.0.0/16"


def test_each_network_that_is_found_elsewhere_has_launches_of_its_own() -> None:
    """Ranks are told their interface when they start, and it is theirs for life."""
    networks = [
        {"name": name, "rate_gbps": rate, "found": {"interface": interface}}
        for name, rate, interface in (("slow", 0.2, "eth0"), ("fast", 1, "eth1"))
    ]
    plan = make_plan(
        an_experiment(
            platform=["emulated", "hosts"],
            hosts=["node0", "node1"],
            networks=networks,
            cluster={"shapes": ["2x1"]},
        ),
        devices_of(a_machine()),
    )
    by_key = {case.key: case for case in plan.cases}
    launches = [
        {by_key[trial.case_key].network_name for trial in launch.trials}
        for launch in plan.launches
        if launch.block == 0
    ]
    assert sorted(map(sorted, launches)) == [
        ["fast on emulated", "slow on emulated"],
        ["fast on hosts"],
        ["slow on hosts"],
    ]


def on_hosts(gpus: int, backend: Any, *networks: dict[str, Any]) -> Plan:
    experiment = an_experiment(
        platform="hosts",
        hosts=["node0", "node1"],
        networks=list(networks),
        cluster={"shapes": ["2x1"], "backend": backend},
    )
    return make_plan(experiment, devices_of(a_machine(gpus)))


FABRIC: dict[str, Any] = {"name": "fabric", "found": {"interface": "ib0", "transport": "roce"}}


def test_a_network_that_is_meant_as_rdma_is_left_out_where_gloo_runs_alone() -> None:
    """It would be measured over TCP, and stand in the table as RoCE."""
    plan = on_hosts(0, "auto", POD, FABRIC)
    assert {case.plain_network_name for case in plan.cases} == {"pod"}
    assert (
        "network fabric is left out on hosts: it is meant as RDMA, and the backend here is gloo, "
        "which sends over TCP"
    ) in plan.notes


def test_gloo_alone_is_refused_where_every_network_is_meant_as_rdma() -> None:
    with pytest.raises(InputError, match=r"networks\.fabric\.found\.transport: roce is RDMA") as it:
        on_hosts(0, "auto", FABRIC)
    assert "hint: `backend: nccl` on GPUs" in str(it.value)


def test_beside_nccl_gloo_is_left_out_there() -> None:
    plan = on_hosts(2, ["nccl", "gloo"], POD, FABRIC)
    names = {(case.plain_network_name, case.backend) for case in plan.cases}
    assert names == {("pod", "nccl"), ("pod", "gloo"), ("fabric", "nccl")}
    assert any("Gloo sends over TCP, and network fabric is meant as RDMA" in n for n in plan.notes)


def test_where_it_is_emulated_it_is_tcp_and_nothing_is_refused() -> None:
    experiment = an_experiment(networks=[{**SLOW, **FABRIC}], cluster={"shapes": ["2x1"]})
    plan = make_plan(experiment, devices_of(a_machine()))
    assert {case.link.rate_gbps for case in plan.cases if case.link} == {1}


def test_an_rdma_network_its_tcp_twin_and_one_without_gpudirect_are_three_cases() -> None:
    twins = [
        {"name": "roce", "found": {"interface": "ib0", "transport": "roce"}},
        {"name": "no-gdr", "found": {"interface": "ib0", "transport": "roce", "gpudirect": False}},
        {"name": "tcp", "found": {"interface": "ib0", "transport": "tcp"}},
        {"name": "any", "found": {"interface": "ib0"}},
    ]
    plan = on_hosts(2, "auto", *twins)
    assert len({case.key for case in plan.cases}) == len(plan.cases)
    assert {case.plain_network_name for case in plan.cases} == {"roce", "no-gdr", "tcp", "any"}
