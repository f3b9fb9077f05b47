"""Which of a cluster's definitions become networks of a first experiment, and what is said?"""

from pathlib import Path
from typing import Any

import pytest
from tests.platforms.kubernetes.inventory.made_up import answers, inventory
from tests.running.first_on_cluster import (
    NETWORKS,
    definition,
    device,
    faces,
    loaded,
    of_networks,
    written,
)

from broadgauge.platforms.kubernetes.inventory.cluster_inventory import NotKnown
from broadgauge.running.experiments import load_text
from broadgauge.running.rendering.experiment import render_experiment

FROM_RANGE = {"type": "whereabouts"}


@pytest.mark.parametrize(
    "names",
    [
        ("default/foo-1", "default/foo-2", "default/foo-nics", "training/foo-nics"),
        (
            "default/abcdefgh-nicsxyz",
            "training/abcdefgh-nicsxyz",
            "training/abcdefgh-1",
            "training/abcdefgh-2",
        ),
        ("training/foo-nics-nics-2", "training/foo-1", "training/foo-2"),
    ],
)
def test_no_network_is_named_as_another_of_so_many_nics(
    names: tuple[str, ...], tmp_path: Path
) -> None:
    found = [each.split("/") for each in names]
    items = [
        device(name, f"ens{number}", space=space, ipam=FROM_RANGE)
        for number, (space, name) in enumerate(found)
    ]
    assert faces(loaded(written(inventory(of_networks(items))), tmp_path))


def over(name: str, master: str, plugin: str = "macvlan", **config: Any) -> dict[str, Any]:
    """A definition over a node's device."""
    return definition(name, type=plugin, master=master, **{"ipam": FROM_RANGE, **config})


@pytest.mark.parametrize(
    ("ipam", "words"),
    [
        ({"type": "host-local"}, "host-local counts on each node by itself"),
        ({"type": "static", "addresses": [{"address": "10.9.0.1/24"}]}, "static gives every pod"),
    ],
)
def test_who_gives_two_pods_one_address_is_said(
    ipam: dict[str, Any], words: str, tmp_path: Path
) -> None:
    found = written(inventory(of_networks([over("a", "ens1", ipam=ipam)])))
    assert "a" in faces(loaded(found, tmp_path))
    assert any(each.startswith(f"networks.a: {words}") for each in found.notes)


OVN: dict[str, Any] = {"type": "ovn-k8s-cni-overlay", "topology": "layer2"}


@pytest.mark.parametrize(
    ("config", "is_taken"),
    [
        ({"type": "macvlan", "master": "ens1"}, False),
        ({"type": "sriov"}, False),
        ({"type": "ib-sriov"}, True),
        ({**OVN, "subnets": "10.100.0.0/16"}, True),
        (OVN, False),
        ({}, True),  # a file on the nodes says it
    ],
)
def test_pods_that_get_no_address_are_not_tried(
    config: dict[str, Any], is_taken: bool, tmp_path: Path
) -> None:
    resource = "openshift.io/ib_a" if config.get("type") == "ib-sriov" else None
    items = [definition("a", resource=resource, **config)]
    found = written(inventory(of_networks(items, "sriov_openshift")))
    assert ("a" in faces(loaded(found, tmp_path))) == is_taken
    said = "networks.a: left out, its definition names no `ipam`"
    assert any(each.startswith(said) for each in found.missing) != is_taken


@pytest.mark.parametrize(
    "items",
    [
        [over("vlan-100", "bond0.100"), over("vlan-200", "bond0.200")],
        [
            definition(f"vlan-{vlan}", type="sriov", vlan=vlan, ipam=FROM_RANGE)
            for vlan in (100, 200)
        ],
        [
            definition(
                f"vlan-{number}00",
                resource=f"openshift.io/{pool}",
                type="sriov",
                ipam=FROM_RANGE,
            )
            for number, pool in ((1, "eth"), (2, "roce_a"))
        ],
    ],
)
def test_networks_of_two_vlans_or_transports_are_no_rails(
    items: list[dict[str, Any]], tmp_path: Path
) -> None:
    of = faces(loaded(written(inventory(of_networks(items, "sriov_openshift"))), tmp_path))
    assert sorted(of) == ["vlan-100", "vlan-200"]
    if any(each.resources for each in of.values()):
        assert [each.transport for each in of.values()] == [None, "roce"]


def test_rails_are_said_to_be_inferred_and_those_cut_off_are_named() -> None:
    found = written(inventory(of_networks([over(f"r-{n}", f"ens{n}") for n in range(20)])))
    said = [each for each in found.notes if each.startswith("networks.r: ")]
    assert "taken for rails" in said[0]
    assert said[1] == "networks.r: r-16, r-17, r-18, r-19 are left out: a node has 16 NICs at most"
    assert "r-16, r-17, r-18, r-19 are left out" in found.text


def test_pools_of_another_prefix_are_matched_by_their_name(tmp_path: Path) -> None:
    """NVIDIA's network operator has its own."""
    resource = "nvidia.com/mlnxnics"
    items = [definition("a", resource=resource, type="sriov", ipam=FROM_RANGE)]
    data = of_networks(items, "sriov_openshift")
    for node in data["nodes"]["items"]:
        node["status"]["allocatable"][resource] = "8"
    data["policies"]["items"] = [{"spec": {"resourceName": "mlnxnics", "isRdma": True}}]
    face = faces(loaded(written(inventory(data)), tmp_path))["a"]
    assert (face.transport, face.resources) == ("roce", (resource,))


@pytest.mark.parametrize("is_alone", [True, False])
def test_an_infiniband_device_is_not_paired_with_an_ethernet_plugin(
    is_alone: bool, tmp_path: Path
) -> None:
    data = of_networks([over("a", "ens1")])
    for node in data["nodes"]["items"]:
        allocatable = node["status"]["allocatable"]
        allocatable["rdma/rdma_shared_device_ib"] = "1k"
        if is_alone:
            del allocatable["rdma/rdma_shared_device_eth"]
    found = written(inventory(data))
    assert faces(loaded(found, tmp_path))["a"].transport is None
    assert any(each.startswith("rdma/rdma_shared_device_ib: over which") for each in found.missing)


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        ({"plugin": "macvlan"}, {"plugin": "ipvlan"}, "a device can't have both over it"),
        ({"mode": "passthru"}, {}, "`passthru` has its device alone"),
        ({"plugin": "ipvlan", "mode": "l3"}, {"plugin": "ipvlan"}, "have the mode of the last"),
        ({"plugin": "ipvlan", "mode": "l2"}, {"plugin": "ipvlan"}, None),
        ({}, {}, None),
    ],
)
def test_two_networks_over_one_device_are_as_an_experiments_own(
    one: dict[str, Any], other: dict[str, Any], words: str | None, tmp_path: Path
) -> None:
    found = written(inventory(of_networks([over("a", "ens1", **one), over("b", "ens1", **other)])))
    assert list(faces(loaded(found, tmp_path))) == (["a", "b"] if words is None else ["a"])
    said = [each for each in found.missing if each.startswith("networks.b: left out, a has ens1")]
    assert [words in each for each in said if words] == ([] if words is None else [True])


def test_the_namespaces_own_pod_network_is_no_further_one(tmp_path: Path) -> None:
    items = [definition("own", **OVN, subnets="10.1.0.0/16", role="primary")]
    found = written(inventory(of_networks(items)))
    assert faces(loaded(found, tmp_path)) == {}
    assert "training/own is left out: it is the namespace's pod network" in found.text


@pytest.mark.parametrize(("count", "nics"), [(1, 1), (4, 4), (32, 16)])
def test_efa_is_shown_with_what_it_asks_for(count: int, nics: int, tmp_path: Path) -> None:
    data = answers("own_switch")
    data["attachments"] = NotKnown(f"the cluster has no {NETWORKS}")
    for node in data["nodes"]["items"]:
        node["status"]["allocatable"]["vpc.amazonaws.com/efa"] = str(count)
    found = written(inventory(data))
    face = "kubernetes: {attachment: device-plugin, profile: efa}"
    commented = f"# - {{name: efa, nics_per_node: {nics}, {face}}}"
    assert f"{nics} of the {count} that a node has" in found.text
    assert commented in found.text
    assert any(each.startswith("vpc.amazonaws.com/efa") for each in found.missing)
    taken = found.text.replace(commented, commented.removeprefix("# "))
    experiment = load_text(taken, tmp_path / "experiment.yaml", ())
    assert render_experiment(experiment).jobs
    [efa] = [each for each in experiment.experiment.networks if each.name == "efa"]
    assert getattr(efa, "num_nics", None) == nics


def test_what_another_network_has_used_up_is_said_so(tmp_path: Path) -> None:
    resource = "openshift.io/eth"
    items = [
        definition(name, resource=resource, type="sriov", vlan=vlan, ipam=FROM_RANGE)
        for name, vlan in (("a", 1), ("b", 2))
    ]
    data = of_networks(items, "sriov_openshift")
    for node in data["nodes"]["items"]:
        node["status"]["allocatable"][resource] = "1"
    found = written(inventory(data))
    assert list(faces(loaded(found, tmp_path))) == ["a"]
    [said] = [each for each in found.missing if each.startswith("networks.b: left out")]
    assert f"fewer than 2 of these nodes have {resource} for a as well" in said


@pytest.mark.parametrize(("name", "is_shared"), [("vpc", True), ("own_switch", False)])
def test_namespaces_that_openshift_may_share_are_said(name: str, is_shared: bool) -> None:
    items = [over("a", "ens1", space="openshift-sriov-network-operator")]
    found = written(inventory(of_networks(items, name)))
    whole = "network openshift-sriov-network-operator/a: left out, it is of "
    assert any(each.startswith(whole) for each in found.missing) == is_shared
    assert ("may share" in found.text) == is_shared


def test_values_that_are_no_text_are_not_printed() -> None:
    secret = {"password": "hunter2"}
    found = written(inventory(of_networks([over("a", "ens1", device=secret)])))
    assert "is no name of a device" in found.text
    assert "hunter2" not in found.text + "".join(found.missing)
