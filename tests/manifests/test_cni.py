"""Proves manifests/cni.py: what is rendered is what each plugin documents, and nothing else."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from broadgauge.manifests.cni import configuration, named, problems
from broadgauge.specs.attached import Attached
from broadgauge.specs.errors import InputError

RANGE = {"kind": "whereabouts", "ranges": "10.0.1.0/24"}


def config_of(**face: Any) -> dict[str, Any]:
    attached = Attached.model_validate(face)
    text = named(configuration(attached, 0, network="n"), "demo-n")
    config: dict[str, Any] = json.loads(text)
    assert problems(config) == []
    assert config.pop("cniVersion") == "0.3.1"
    assert config.pop("name") == "demo-n"
    return config


def test_an_exclusive_rdma_namespace_chains_its_plugin_last() -> None:
    face = {"attachment": "sriov", "resources": "a.io/vf", "transport": "roce"}
    plain, exclusive = config_of(**face), config_of(**face, rdma_namespace="exclusive")
    assert exclusive == {"plugins": [plain, {"type": "rdma"}]}
    assert config_of(**face, rdma_namespace="shared") == plain
    with_mtu = config_of(**face, rdma_namespace="exclusive", mtu_bytes=9000)
    assert [each["type"] for each in with_mtu["plugins"]] == ["sriov", "tuning", "rdma"]


@pytest.mark.parametrize(
    "face",
    [
        {"attachment": "macvlan", "devices": "ens1", "resources": "a/b"},
        {"attachment": "existing", "definitions": "n", "resources": "a/b"},
        {"attachment": "host-device", "devices": "ens1"},
    ],
)
def test_an_exclusive_rdma_namespace_needs_a_device_that_moves(face: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=r"moves no adapter|`rdma` CNI plugin"):
        Attached.model_validate(face | {"rdma_namespace": "exclusive"})


def test_each_attachment_is_its_plugins() -> None:
    device = {"devices": "ens1", "ipam": RANGE}
    ipam = {"type": "whereabouts", "range": "10.0.1.0/24"}
    assert config_of(attachment="host-device", **device) == {
        "type": "host-device", "device": "ens1", "ipam": ipam}  # fmt: skip
    over = {"master": "ens1", "mode": "bridge", "mtu": 9000, "ipam": ipam}
    assert config_of(attachment="macvlan", mtu_bytes=9000, **device) == {"type": "macvlan"} | over
    assert config_of(attachment="ipvlan", mode="l3", **device) == {
        "type": "ipvlan", "master": "ens1", "mode": "l3", "ipam": ipam}  # fmt: skip
    assert config_of(attachment="bridge", devices="br0") == {"type": "bridge", "bridge": "br0"}
    assert config_of(attachment="sriov", resources="a.io/vf") == {"type": "sriov"}
    assert config_of(attachment="sriov", resources="a.io/vf", transport="infiniband") == {
        "type": "ib-sriov", "link_state": "enable"}  # fmt: skip


def test_mtu_of_a_moved_device_is_set_by_a_second_plugin() -> None:
    config = config_of(attachment="host-device", devices="ens1", mtu_bytes=9000)
    device = {"type": "host-device", "device": "ens1"}
    assert config == {"plugins": [device, {"type": "tuning", "mtu": 9000}]}


@pytest.mark.parametrize(
    ("ipam", "expected"),
    [
        (
            {**RANGE, "exclude": ["10.0.1.0/30"], "gateway": "10.0.1.1"},
            {
                "type": "whereabouts",
                "range": "10.0.1.0/24",
                "exclude": ["10.0.1.0/30"],
                "gateway": "10.0.1.1",
            },
        ),
        ({"kind": "nv-ipam", "pools": "rail"}, {"type": "nv-ipam", "poolName": "rail"}),
        (
            {"kind": "host-local", "ranges": "10.0.1.0/24"},
            {"type": "host-local", "ranges": [[{"subnet": "10.0.1.0/24"}]]},
        ),
        ({"kind": "dhcp"}, {"type": "dhcp"}),
        ({"kind": "none"}, None),
        ({"kind": "address-map", "map": "m.yaml"}, None),
    ],
)
def test_each_way_to_get_an_address(ipam: dict[str, Any], expected: object) -> None:
    config = config_of(attachment="macvlan", devices="ens1", ipam=ipam)
    assert config.get("ipam") == expected


@pytest.mark.parametrize(
    ("config", "trouble"),
    [
        ({"type": "host-device", "device": "ens1", "isRdma": True}, "has no key `isRdma`"),
        ({"type": "macvlan", "mode": "bridge"}, "`macvlan` needs `master`"),
        ({"type": "tunnel"}, "unknown plugin `tunnel`"),
        ({"type": "bridge", "bridge": "b", "ipam": {"type": "other"}}, "unknown `ipam`"),
        (
            {"type": "bridge", "bridge": "b", "ipam": {"type": "whereabouts", "rnge": "x"}},
            "has no key `rnge`",
        ),
        ({"plugins": []}, "`plugins` is no list"),
        ({"plugins": [{"type": "sriov"}], "ipam": {}}, "unknown key `ipam`"),
        ({"cniVersion": "9"}, "`cniVersion`"),
    ],
)
def test_what_a_plugin_does_not_know_is_named(config: dict[str, Any], trouble: str) -> None:
    """The first is the published sample's."""
    found = problems({"cniVersion": "0.3.1", "name": "n", **config})
    assert any(trouble in each for each in found), found


def test_text_of_the_published_sample_is_no_configuration() -> None:
    assert problems("{") == ["it is no JSON object"]


def test_mode_of_another_plugin_is_refused() -> None:
    attached = Attached.model_validate({"attachment": "macvlan", "devices": "a", "mode": "l2"})
    with pytest.raises(InputError, match="`l2` is no mode of macvlan"):
        configuration(attached, 0, network="n")


@pytest.mark.parametrize(
    ("face", "trouble"),
    [
        ({"attachment": "ipvlan", "devices": "a"}, "`ipvlan` needs an `ipam`"),
        ({"attachment": "macvlan"}, "needs `devices`"),
        (
            {"attachment": "macvlan", "devices": "a", "definitions": "other/net"},
            "in another namespace",
        ),
    ],
)
def test_face_that_no_plugin_takes_is_refused(face: dict[str, Any], trouble: str) -> None:
    with pytest.raises(ValidationError, match=trouble):
        Attached.model_validate(face)
