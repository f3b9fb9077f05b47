"""Proves manifests/interfaces.py: networks share NICs, and what can't be shared is refused."""

from typing import Any

import pytest
from tests.manifests.requests import VNIC, experiment_of, request_of

from broadgauge.catalog.fabrics import pod_networks
from broadgauge.manifests.interfaces import Interfaces, plan_interfaces
from broadgauge.manifests.pod_template import of_networks
from broadgauge.specs.errors import InputError
from broadgauge.specs.network import Network

MAP = "w0:ens13:net5:10.0.1.9\nw0:ens14:net2:10.0.2.9\nw1:ens13:net5:10.0.1.10\n"
ROCE = {
    "attachment": "existing",
    "definitions": "rdmashared-net",
    "resources": "rdma/shared",
    "transport": "roce",
}


def planned(
    *networks: dict[str, Any], num_pods: int = 2, address_map: str | None = None
) -> Interfaces:
    entries = [Network.model_validate(each) for each in networks]
    return plan_interfaces(
        pod_networks(entries), num_pods=num_pods, prefix="demo", address_map=address_map
    )


def shown(plan: Interfaces) -> list[tuple[str, str]]:
    return [(each.name, each.definition) for each in plan.found]


def test_pod_network_adds_no_interface() -> None:
    plan = planned({"name": "pod", "kubernetes": "pod"})
    assert (plan.found, plan.of_network) == ([], {"pod": ()})


def test_one_nic_and_two_nics_share_the_first() -> None:
    plan = planned(
        {"name": "one", "kubernetes": VNIC}, {"name": "two", "nics_per_node": 2, "kubernetes": VNIC}
    )
    assert shown(plan) == [("net1", "demo-ens13"), ("net2", "demo-ens14")]
    assert plan.of_network == {"one": ("demo-ens13",), "two": ("demo-ens13", "demo-ens14")}
    assert [each.networks for each in plan.found] == [("one", "two"), ("two",)]


def test_as_many_nics_as_pods() -> None:
    plan = planned({"name": "v", "nics_per_node": "nodes", "kubernetes": VNIC}, num_pods=2)
    assert len(plan.found) == 2
    with pytest.raises(InputError, match=r"3 NICs, and `kubernetes.devices` names 2"):
        planned({"name": "v", "nics_per_node": "nodes", "kubernetes": VNIC}, num_pods=3)


def test_twins_share_all_of_it() -> None:
    plan = planned({"name": "roce", "kubernetes": ROCE})
    assert shown(plan) == [("net1", "rdmashared-net")]
    assert list(plan.of_network) == ["roce", "roce-tcp", "roce-without-gpudirect"]


def test_definition_that_is_used_twice_is_attached_twice() -> None:
    face = {"attachment": "sriov", "resources": "a.io/vf"}
    plan = planned(
        {"name": "two", "nics_per_node": 2, "kubernetes": face}, {"name": "one", "kubernetes": face}
    )
    assert shown(plan) == [("net1", "demo-vf"), ("net2", "demo-vf")]
    assert plan.of_network["one"] == ("demo-vf",)


def test_other_configurations_of_a_device_have_names_of_their_own() -> None:
    face = {"attachment": "macvlan", "devices": "ens1"}
    plan = planned(
        {"name": "a", "kubernetes": face}, {"name": "b", "kubernetes": face | {"mode": "vepa"}}
    )
    assert shown(plan) == [("net1", "demo-ens1"), ("net2", "demo-ens1-2")]


def test_device_that_is_moved_can_lie_under_no_other() -> None:
    over = {"attachment": "macvlan", "devices": "ens13"}
    with pytest.raises(InputError, match="both take the device ens13") as caught:
        planned({"name": "vnic", "kubernetes": VNIC}, {"name": "over", "kubernetes": over})
    assert "allocation: per_case" in str(caught.value.hint)


def test_address_map_names_the_interfaces() -> None:
    by_map = VNIC | {"ipam": {"kind": "address-map", "map": "m"}}
    plan = planned(
        {"name": "roce", "kubernetes": ROCE},
        {"name": "vnic", "nics_per_node": 2, "kubernetes": by_map},
        address_map=MAP,
    )
    assert shown(plan) == [
        ("net1", "rdmashared-net"),
        ("net5", "demo-ens13"),
        ("net2", "demo-ens14"),
    ]


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        ("w0:ens9:net1:10.0.1.9\n", "`ens13` is not in the address map, which has ens9"),
        (MAP + "w2:ens13:net7:10.0.1.11\n", "calls `ens13` net5 and net7"),
        ("w0:ens13\n", "columns"),
    ],
)
def test_address_map_that_lacks_a_device_is_refused(text: str, trouble: str) -> None:
    by_map = VNIC | {"ipam": {"kind": "address-map", "map": "m"}}
    with pytest.raises(InputError, match=trouble):
        planned({"name": "vnic", "kubernetes": by_map}, address_map=text)


def test_two_definitions_of_one_name_are_refused() -> None:
    named = {"attachment": "macvlan", "definitions": "net"}
    with pytest.raises(InputError, match="`net` would be written twice"):
        planned(
            {"name": "a", "kubernetes": named | {"devices": "ens1"}},
            {"name": "b", "kubernetes": named | {"devices": "ens2"}},
        )


def test_resources_are_as_many_as_the_network_that_needs_most() -> None:
    face = {"attachment": "sriov", "resources": "a.io/vf"}
    networks = [
        {"name": "one", "kubernetes": face},
        {"name": "four", "nics_per_node": 4, "kubernetes": face},
        {"name": "roce", "kubernetes": ROCE},
        {"name": "efa", "nics_per_node": 8, "kubernetes": {"profile": "efa"}},
    ]
    experiment = experiment_of(networks=networks)
    found = of_networks(request_of(experiment))
    assert found == {"a.io/vf": 4, "rdma/shared": 1, "vpc.amazonaws.com/efa": 8}


def test_agents_are_told_the_definitions_of_a_cases_network() -> None:
    networks = [
        {"name": "pod", "kubernetes": "pod"},
        {"name": "vnic", "nics_per_node": 2, "kubernetes": VNIC},
        {"name": "roce", "kubernetes": ROCE},
    ]
    request = request_of(experiment_of(networks=networks, namespace="space"))
    told = {case.network_name: request.pod_network(case) for case in request.cases}
    pod, vnic, twin = told["pod"], told["vnic"], told["roce-without-gpudirect"]
    assert pod is not None
    assert pod.is_pod_network
    assert vnic is not None
    assert vnic.attachments == ("space/demo-ens13", "space/demo-ens14")
    assert vnic.subnets == ("10.0.1.0/24", "10.0.2.0/24")
    assert twin is not None
    assert (twin.attachments, twin.transport, twin.gpudirect) == (
        ("space/rdmashared-net",),
        "roce",
        False,
    )
