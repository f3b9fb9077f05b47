"""Proves manifests/cni.py: what is rendered is what each plugin documents, and nothing else."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from tests.manifests.faces import attached, networks, on_pods

from broadgauge.manifests.cni import configuration, named, problems
from broadgauge.specs.networks.pod_networks import SecondaryNetwork

RANGE = {"kind": "whereabouts", "ranges": "10.0.1.0/24"}


def config_of(**face: Any) -> dict[str, Any]:
    network = on_pods({"name": "n", "kubernetes": face}).kubernetes
    assert isinstance(network, SecondaryNetwork)
    config: dict[str, Any] = json.loads(named(configuration(network, 0), "demo-n"))
    assert config.pop("cniVersion") == "0.3.1"
    assert config.pop("name") == "demo-n"
    return config


@given(network=networks())
@settings(max_examples=100, deadline=None)
def test_any_legal_face_has_definitions_that_its_plugins_take(network: dict[str, Any]) -> None:
    """One definition a NIC with an interface of ours, one resource or more a NIC of a plugin's."""
    face, nics = network["kubernetes"], network["nics_per_node"]
    found, definitions = attached(network)
    kind = face["attachment"]
    has_interface = kind != "device-plugin"
    assert len(found.interfaces) == (nics if has_interface else 0)
    assert len({each.name for each in found.interfaces}) == len(found.interfaces)
    for name, each in definitions.rendered.items():
        assert each.config is not None
        config = json.loads(named(each.config, name))
        assert (config["name"], problems(config)) == (name, [])
        (first, *chained) = config.get("plugins", [config])
        assert first["type"] == kind
        assert {each["type"] for each in chained} <= {"tuning", "rdma"}
        for key, value in (("device", "devices"), ("master", "devices"), ("bridge", "devices")):
            assert key not in first or first[key] in face[value]
        assert ("type" in first.get("ipam", {})) == ("ipam" in first)
    assert bool(definitions.rendered) == (kind not in ("existing", "device-plugin"))
    assert sum(found.resources.values()) == (nics if face.get("resources") else 0)


def test_each_attachment_is_its_plugins() -> None:
    device = {"devices": "ens1", "ipam": RANGE}
    ipam = {"type": "whereabouts", "range": "10.0.1.0/24"}
    assert config_of(attachment="host-device", **device) == {
        "type": "host-device", "device": "ens1", "ipam": ipam}  # fmt: skip
    over = {"master": "ens1", "mode": "bridge", "mtu": 9000, "ipam": ipam}
    assert config_of(attachment="macvlan", mtu_bytes=9000, **device) == {"type": "macvlan"} | over
    assert config_of(attachment="ipvlan", mode="l3", **device) == {
        "type": "ipvlan", "master": "ens1", "mode": "l3", "ipam": ipam}  # fmt: skip
    assert config_of(attachment="bridge", devices="br0", ipam="dhcp") == {
        "type": "bridge", "bridge": "br0", "ipam": {"type": "dhcp"}}  # fmt: skip
    vf = {"resources": "a.io/vf", "ipam": "dhcp"}
    given = {"ipam": {"type": "dhcp"}}
    assert config_of(attachment="sriov", **vf) == {"type": "sriov"} | given
    for transport in ("infiniband", "tcp"):
        assert config_of(attachment="ib-sriov", transport=transport, **vf) == {
            "type": "ib-sriov", "link_state": "enable"} | given  # fmt: skip


def test_rdma_may_go_without_an_address() -> None:
    face = {"attachment": "host-device", "devices": "e", "resources": "a/b", "transport": "roce"}
    assert config_of(**face, ipam="none") == config_of(**face) == {
        "type": "host-device", "device": "e"}  # fmt: skip


def test_mtu_of_a_moved_device_is_set_by_a_second_plugin_and_its_rdma_moved_by_a_third() -> None:
    face = {"attachment": "sriov", "resources": "a.io/vf", "transport": "roce"}
    config = config_of(**face, mtu_bytes=9000, rdma_namespace="exclusive")
    tuned = {"type": "tuning", "mtu": 9000}
    assert config == {"plugins": [{"type": "sriov"}, tuned, {"type": "rdma"}]}


@pytest.mark.parametrize(
    ("ipam", "expected"),
    [
        (
            {"kind": "whereabouts", "ranges": ["10.0.1.0/24", "10.9.0.0/24"],
             "exclude": ["10.0.1.8/30", "10.9.0.0/30"], "gateway": "10.0.1.1"},
            {"type": "whereabouts", "range": "10.0.1.0/24",
             "exclude": ["10.0.1.8/30", "10.0.1.1/32"], "gateway": "10.0.1.1"},
        ),
        ({"kind": "nv-ipam", "pools": "rail"}, {"type": "nv-ipam", "poolName": "rail"}),
        ({"kind": "static", "ranges": "10.0.1.0/24"}, {"type": "static"}),
        ("dhcp", {"type": "dhcp"}),
        ({"kind": "address-map", "map": "m.yaml"}, None),
    ],
)  # fmt: skip
def test_each_way_to_get_an_address(ipam: object, expected: object) -> None:
    config = config_of(attachment="macvlan", devices="ens1", ipam=ipam)
    assert config.get("ipam") == expected
    assert ("capabilities" in config) == (expected == {"type": "static"})


@pytest.mark.parametrize(
    ("config", "trouble"),
    [
        ({"type": "host-device", "device": "ens1", "isRdma": True}, "has no key `isRdma`"),
        ({"type": "macvlan", "mode": "bridge"}, "`macvlan` needs `master`"),
        ({"type": "macvlan", "master": "a", "mode": "l2"}, "`l2` is no mode of `macvlan`"),
        ({"type": "tunnel"}, "unknown plugin `tunnel`"),
        ({"type": "bridge", "bridge": "b", "ipam": {"type": "other"}}, "unknown `ipam`"),
        (
            {"type": "bridge", "bridge": "b", "ipam": {"type": "whereabouts", "rnge": "x"}},
            "has no key `rnge`",
        ),
        ({"plugins": []}, "`plugins` is no list"),
        ({"plugins": [{"type": "sriov"}], "ipam": {}}, "unknown key `ipam`"),
        ({"cniVersion": "9", "type": "sriov"}, "`cniVersion`"),
        ({"name": "a b", "type": "sriov"}, "`a b` is no `name`"),
    ],
)
def test_what_a_plugin_does_not_know_is_named(config: dict[str, Any], trouble: str) -> None:
    """The first is the published sample's."""
    found = problems({"cniVersion": "0.3.1", "name": "n", **config})
    assert any(trouble in each for each in found), found


def test_text_of_the_published_sample_is_no_configuration() -> None:
    assert problems("{") == ["it is no JSON object"]
