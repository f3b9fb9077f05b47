"""Proves manifests/interfaces.py and attachment_conflicts.py: networks share NICs, and what one pod
can't have is refused."""

from typing import Any

import pytest
from tests.manifests.faces import attached, on_pods

from broadgauge.agent.pod.address_map import parse_map
from broadgauge.manifests.attachment_conflicts import refuse_conflicts
from broadgauge.manifests.definitions import Definitions
from broadgauge.manifests.interfaces import Attachments, attach
from broadgauge.specs.errors import InputError
from broadgauge.specs.networks.ipam import usable

VNIC = {"attachment": "host-device", "devices": ["ens13", "ens14"], "ipam": "dhcp"}
ROCE = {
    "attachment": "existing",
    "definitions": "rdmashared-net",
    "resources": "rdma/shared",
    "transport": "roce",
}
VF = {"attachment": "sriov", "resources": "a.io/vf", "ipam": "dhcp"}
MAP = "w0:ens13:net5:10.0.1.9\nw0:ens14:net2:10.0.2.9\nw1:ens13:net5:10.0.1.10\n"
BY_MAP = VNIC | {"ipam": {"kind": "address-map", "map": "m"}}


def entry(name: str, face: dict[str, Any], nics: int = 1) -> dict[str, Any]:
    return {"name": name, "nics_per_node": nics, "kubernetes": face}


def shown(found: Attachments) -> list[tuple[str, str]]:
    return [(each.name, each.definition) for each in found.interfaces]


def mapped(*networks: dict[str, Any], text: str = MAP, num_pods: int = 1) -> Attachments:
    rows = parse_map(text)
    found = attach([on_pods(each, num_pods) for each in networks], Definitions("demo"), rows)
    refuse_conflicts(found, num_pods, rows, is_each_told=False)
    return found


def checked(*networks: dict[str, Any], num_pods: int = 2, is_each_told: bool = False) -> None:
    found, _ = attached(*networks, num_pods=num_pods)
    refuse_conflicts(found, num_pods, (), is_each_told=is_each_told)


def over(device: str, kind: str = "macvlan", **more: Any) -> dict[str, Any]:
    return {"attachment": kind, "devices": device, "ipam": "dhcp", **more}


def ranged(subnet: str, **more: Any) -> dict[str, Any]:
    return {"kind": "whereabouts", "ranges": subnet, **more}


def test_one_nic_and_two_nics_share_the_first() -> None:
    found, definitions = attached(entry("pod", {"attachment": "pod"}), entry("one", VNIC),
                                  entry("two", VNIC, 2))  # fmt: skip
    assert shown(found) == [("net1", "demo-ens13"), ("net2", "demo-ens14")]
    assert found.names_of == {"pod": ("eth0",), "one": ("net1",), "two": ("net1", "net2")}
    assert [each.networks for each in found.interfaces] == [("one", "two"), ("two",)]
    assert list(definitions.rendered) == ["demo-ens13", "demo-ens14"]


def test_rdma_and_tcp_on_the_same_nic_are_one_interface() -> None:
    plain = {"attachment": "existing", "definitions": "rdmashared-net", "transport": "tcp"}
    found, definitions = attached(entry("roce", ROCE), entry("tcp", plain))
    assert shown(found) == [("net1", "rdmashared-net")]
    assert (found.resources, definitions.rendered) == ({"rdma/shared": 1}, {})


def test_definition_that_is_used_twice_is_attached_twice() -> None:
    found, _ = attached(entry("one", VF), entry("two", VF, 2))
    assert shown(found) == [("net1", "demo-vf"), ("net2", "demo-vf")]
    assert found.resources == {"a.io/vf": 2}


def test_resources_are_as_many_as_pods_need_of_each() -> None:
    """One for each NIC; one NIC's, once for all networks that use it."""
    rails = VF | {"resources": ["a.io/r0", "a.io/r1"]}
    pair = ROCE | {"definitions": ["net-a", "net-b"]}
    tcp = pair | {"transport": "tcp", "resources": ()}
    found, _ = attached(
        entry("one", VF), entry("four", VF, 4), entry("tcp", tcp, 2), entry("roce", pair, 2),
        entry("rails", rails, 2),
    )  # fmt: skip
    assert found.resources == {"a.io/vf": 4, "a.io/r0": 1, "a.io/r1": 1, "rdma/shared": 2}


def test_sockets_of_a_nic_without_an_address_are_the_pods_own() -> None:
    ib = {"attachment": "ib-sriov", "resources": "a/ib", "transport": "infiniband"}
    found, _ = attached(entry("ib", ib, 2))
    assert (found.names_of["ib"], found.nics_of["ib"]) == (("eth0",), ("net1", "net2"))


def test_a_definition_that_is_there_is_none_that_is_rendered() -> None:
    there = {"attachment": "existing", "definitions": "demo-ens13"}
    with pytest.raises(InputError, match=r"`demo-ens13` is one that is rendered, for vnic"):
        attached(entry("vnic", VNIC), entry("there", there))


def test_a_definition_has_one_name_in_all_jobs() -> None:
    definitions = Definitions("demo")
    for face in (over("ens1", mode="vepa"), over("ens1"), over("ens1", mode="vepa")):
        attach([on_pods(entry("n", face))], definitions, ())
    assert list(definitions.rendered) == ["demo-ens1", "demo-ens1-2"]


def test_address_map_names_the_interfaces() -> None:
    found = mapped(entry("roce", ROCE), entry("vnic", BY_MAP, 2))
    assert shown(found) == [
        ("net1", "rdmashared-net"), ("net5", "demo-ens13"), ("net2", "demo-ens14")]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("w0:ens9:net1:10.0.1.9\n", ["networks.vnic.kubernetes.devices", "`ens13`", "has ens9"]),
        (MAP + "w2:ens13:net7:10.0.1.11\n", ["calls `ens13` net5 and net7", "on all nodes"]),
        ("w0:ens13:net1:10.0.1.9\nw0:ens14:net2:10.0.2.9\nw1:ens13:net1:10.0.1.10\n",
         ["networks.vnic.kubernetes.ipam.map", "ens14 is listed for 1 node (w0)", "2 pods"]),
    ],
)  # fmt: skip
def test_address_map_that_lacks_something_is_refused(text: str, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        mapped(entry("vnic", BY_MAP, 2), text=text, num_pods=2)
    assert all(word in f"{caught.value} {caught.value.hint}" for word in words), caught.value


TAKEN_AWAY = "takes it away from all others"


@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        (over("ens13"), VNIC, TAKEN_AWAY),
        (over("ens13", "bridge"), VNIC, TAKEN_AWAY),
        (VNIC, VNIC | {"mtu_bytes": 9000}, TAKEN_AWAY),
        (over("ens13"), over("ens13", "ipvlan", ipam="dhcp"), "can't have both over it"),
        (over("ens13", mode="passthru"), over("ens13", mtu_bytes=9000), "has its device alone"),
        (
            over("ens13", "ipvlan", ipam="dhcp"),
            over("ens13", "ipvlan", ipam="dhcp", mode="l3"),
            "have the mode of the last",
        ),
    ],
)
def test_two_networks_on_one_interface_are_refused(
    one: dict[str, Any], other: dict[str, Any], reason: str
) -> None:
    with pytest.raises(
        InputError, match=rf"networks\.b\.kubernetes\.devices: .*`ens13` is a's.*{reason}"
    ) as e:
        checked(entry("a", one), entry("b", other))
    assert "allocation: per_case" in str(e.value.hint)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (over("ens1"), over("ens1", mode="vepa")),
        (over("ens1", "ipvlan", ipam="dhcp"), over("ens1", "ipvlan", ipam="dhcp", mtu_bytes=9000)),
        (over("br0", "bridge"), over("br0", "bridge", mtu_bytes=9000)),
        (over("br0", "bridge"), over("br0")),
        (over("br0", "ipvlan", ipam="dhcp"), over("br0", "bridge")),
        (over("ens1"), over("ens2", "ipvlan", ipam="dhcp")),
    ],
)
def test_what_shares_a_device_in_the_kernel_shares_it_here(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    checked(entry("a", one), entry("b", other))


def test_overlapping_ranges_are_refused() -> None:
    one = over("ens1", ipam=ranged("10.0.0.0/16"))
    other = over("ens2", ipam=ranged("10.0.7.0/24"))
    with pytest.raises(InputError, match=r"b\.kubernetes\.ipam\.ranges: 10\.0\.7\.0/24 overl") as e:
        checked(entry("a", one), entry("b", other))
    assert "a subnet of its own" in str(e.value.hint)


@pytest.mark.parametrize(
    ("ipam", "pods", "has"),
    [
        (ranged("10.0.0.0/30"), 3, 2),
        (ranged("10.0.0.0/29", exclude=["10.0.0.0/30"]), 4, 3),
        (ranged("10.0.0.0/29", gateway="10.0.0.1"), 6, 5),
        (ranged("10.0.0.0/31"), 1, 0),
        (ranged("10.0.0.0/32"), 1, 0),
        ({"kind": "static", "ranges": "10.0.0.0/31"}, 1, 0),
        (ranged("fd00::/127"), 1, 0),
        (ranged("10.0.0.0/24", exclude=["10.0.0.0/16"]), 1, 0),
    ],
)
def test_a_range_smaller_than_the_pods_is_refused(
    ipam: dict[str, Any], pods: int, has: int
) -> None:
    network = entry("a", over("ens1", ipam=ipam))
    with pytest.raises(InputError, match=rf"ranges: .* has {has} address.* {pods} pods"):
        checked(network, num_pods=pods)
    if has:
        checked(network, num_pods=has)


@pytest.mark.parametrize(
    ("text", "networks", "words"),
    [
        ("w0:ens13:net1:10.0.1.9\nw1:ens13:net1:10.0.1.10\n"
         "w2:ens14:net2:10.0.2.9\nw3:ens14:net2:10.0.2.10\n", [entry("b", BY_MAP, 2)],
         ["networks.b.kubernetes.ipam.map", "ens13, ens14 are listed together for 0 nodes, and 2 "
          "pods", "for each node and device"]),
        (MAP + "w2:ens14:net2:10.0.2.10\n",
         [entry("a", BY_MAP | {"devices": "ens13"}), entry("b", BY_MAP | {"devices": "ens14"})],
         ["networks.b.kubernetes.ipam.map", "together for 1 node (w0)", "allocation: per_case"]),
        ("w0:ens13:net1:10.1.1.9\nw0:ens14:net2:10.1.1.10\n", [entry("b", BY_MAP, 2)],
         ["networks.b.kubernetes.ipam.map", "10.1.1.10/24 of w0's ens14 overlaps its ens13's "
          "10.1.1.9/24", "two interfaces in one subnet", "without a length is a /24"]),
        ("w0:ens13:net1:10.1.1.9/16\nw0:ens14:net2:10.1.2.9/26\n", [entry("b", BY_MAP, 2)],
         ["10.1.2.9/26 of w0's ens14 overlaps"]),
        (MAP, [entry("a", BY_MAP), entry("b", over("ens2", ipam=ranged("10.0.0.0/22")))],
         ["networks.b.kubernetes.ipam.ranges", "10.0.0.0/22 overlaps 10.0.1.9/24, which the "
          "address map gives w0's ens13", "allocation: per_case"]),
        (MAP + "w2:ens13:net5:10.9.0.9\n",
         [entry("b", over("ens2", ipam=ranged("10.9.0.0/24"))), entry("a", BY_MAP)],
         ["networks.b.kubernetes.ipam.ranges", "w2's ens13"]),
    ],
)  # fmt: skip
def test_what_the_map_makes_of_a_pod_is_seen_as_a_whole(
    text: str, networks: list[dict[str, Any]], words: list[str]
) -> None:
    """Its NICs are together on a node, and each in a subnet of its own."""
    with pytest.raises(InputError) as caught:
        mapped(*networks, text=text, num_pods=2 if "together" in str(words) else 1)
    assert all(word in f"{caught.value} {caught.value.hint}" for word in words), caught.value


def test_nics_of_two_nodes_may_have_one_subnet() -> None:
    text = "w0:ens13:net1:10.1.1.9\nw0:ens14:net2:10.1.2.9\n"
    text += "w1:ens13:net1:10.1.2.10\nw1:ens14:net2:10.1.1.10\n"
    other = entry("b", over("ens2", ipam=ranged("10.1.0.0/24")))
    assert mapped(entry("a", BY_MAP, 2), other, text=text, num_pods=2).interfaces


def test_addresses_of_a_large_subnet_are_not_counted_out() -> None:
    assert str(next(usable("fd00::/64", ("fd00::/65",), None))) == "fd00::8000:0:0:0"
    assert str(next(usable("10.0.0.0/8", ("10.0.0.0/9",), "10.128.0.0"))) == "10.128.0.1"


def test_static_addresses_need_a_template_a_pod() -> None:
    network = entry("a", over("ens1", ipam={"kind": "static", "ranges": "10.0.1.0/24"}))
    checked(network, is_each_told=True)
    with pytest.raises(InputError, match=r"`static` with 2 pods, which share one template"):
        checked(network)


def test_two_definitions_of_one_name_are_refused() -> None:
    with pytest.raises(InputError, match="`net` would be written twice"):
        attached(
            entry("a", over("ens1", definitions="net")), entry("b", over("ens2", definitions="net"))
        )
