"""Proves catalog/profiled.py: a profile completes what a network says, and contradicts it aloud."""

from typing import Any

import pytest

from broadgauge.catalog.fabrics import find_fabric, known_fabrics
from broadgauge.catalog.profiled import check_nics, with_profile
from broadgauge.specs.errors import InputError
from broadgauge.specs.networks.network import Network
from broadgauge.specs.networks.pod_networks import SecondaryNetwork

RAIL = {
    "attachment": "host-device",
    "devices": "e1",
    "profile": "ibm-cluster-network",
    "ipam": "dhcp",
}
EFA = {"attachment": "device-plugin", "profile": "efa"}


def network(face: dict[str, Any], **more: Any) -> Network:
    whole = Network.model_validate({"name": "net", "kubernetes": face, **more})
    return whole.as_found_on("kubernetes")


def completed(face: dict[str, Any], **more: Any) -> tuple[Network, SecondaryNetwork]:
    found = with_profile(network(face, **more))
    assert isinstance(found.kubernetes, SecondaryNetwork)
    return found, found.kubernetes


def test_a_profile_says_what_the_experiment_does_not() -> None:
    found, face = completed(EFA)
    assert (face.transport, face.resources) == ("efa", ("vpc.amazonaws.com/efa",))
    assert found.environment == dict(find_fabric("efa").environment)
    _, face = completed(RAIL | {"resources": "nvidia.com/roce"})
    assert (face.transport, face.nominal_gbps, face.mtu_bytes) == ("roce", 400, 9000)


def test_what_the_experiment_says_wins() -> None:
    own = {"resources": "a.io/mine", "nominal_gbps": 100, "mtu_bytes": 1500}
    found, face = completed(RAIL | own, environment={"NCCL_IB_TIMEOUT": "19"})
    assert (face.resources, face.nominal_gbps, face.mtu_bytes) == (("a.io/mine",), 100, 1500)
    assert found.environment["NCCL_IB_TIMEOUT"] == "19"
    assert found.environment["NCCL_IB_QPS_PER_CONNECTION"] == "16"


def test_tcp_forced_on_rdmas_fabric_has_none_of_its_variables() -> None:
    found, face = completed(RAIL | {"transport": "sriov-tcp"})
    assert (found.environment, face.transport) == ({}, "sriov-tcp")


def test_a_network_without_a_profile_stays_as_it_is() -> None:
    macvlan = {"attachment": "macvlan", "devices": "e", "ipam": "dhcp"}
    for face in ({"attachment": "pod"}, macvlan):
        assert with_profile(network(face)) == network(face)


@pytest.mark.parametrize(
    ("face", "words"),
    [
        (EFA | {"profile": "epa"}, ["networks.net.kubernetes.profile", "`epa`", "efa"]),
        (EFA | {"transport": "roce"}, [".transport: `roce`, and efa is efa", "another profile"]),
        (
            {"attachment": "existing", "definitions": "a", "profile": "efa"},
            [".attachment: `existing` does not work on efa", "`attachment: device-plugin`"],
        ),
        (
            {"attachment": "macvlan", "devices": "e", "profile": "ibm-vnic", "ipam": "dhcp"},
            [".attachment: `macvlan` does not work on ibm-vnic", "host-device"],
        ),
        (
            RAIL | {"ipam": {"kind": "whereabouts", "ranges": "10.0.0.0/24"}, "resources": "a/b"},
            [".ipam.kind: `whereabouts`, and ibm-cluster-network drops", "address-map"],
        ),
        (EFA | {"transport": "tcp"}, [".transport: `tcp`, and efa gives pods no interface"]),
        (
            {"attachment": "host-device", "devices": "e", "profile": "ibm-vnic"},
            [".ipam: TCP needs an address", "address-map"],
        ),
        (
            {"attachment": "macvlan", "devices": "e", "profile": "roce-shared", "resources": "a/b"},
            [".ipam: RoCE over a `macvlan` needs an address"],
        ),
        (RAIL, [".resources: ibm-cluster-network has no name of its own", "Allocatable"]),
    ],
)
def test_what_contradicts_a_fabric_is_refused(face: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        with_profile(network(face))
    told = f"{caught.value} {caught.value.hint}"
    assert all(word in told for word in words), told


def test_a_fabric_whose_variables_name_its_interfaces_has_all_of_them() -> None:
    face = {"attachment": "existing", "definitions": list("abcdefgh"), "profile": "tcpxo"}
    check_nics(network(face, nics_per_node=8).on_nodes(2))
    with pytest.raises(InputError, match=r"nics_per_node: 2, and gpudirect-tcpxo sends by 8"):
        check_nics(network(face, nics_per_node=2).on_nodes(2))


@pytest.mark.parametrize("name", [each.name for each in known_fabrics()])
def test_every_profile_completes_a_network_that_says_no_more_than_it_must(name: str) -> None:
    fabric = find_fabric(name)
    kind = {"resource": "device-plugin", "gke": "existing"}.get(
        fabric.attaches, next(iter(fabric.attachments), "existing")
    )
    face: dict[str, Any] = {"attachment": kind, "profile": name}
    if kind == "host-device":
        face |= {"devices": "e1", "ipam": "dhcp"}
    if kind == "existing":
        face["definitions"] = "net"
    if fabric.resource is None and fabric.transport in ("roce", "infiniband"):
        face["resources"] = "a.io/b"
    _, found = completed(face)
    assert found.transport == fabric.transport
