"""Proves manifests/cni.py and attachment_conflicts.py by CNI's own plugins and this kernel: what is
rendered gives a pod the interface that it says, and devices are shared as it says.

An API server does not look into a definition's `config`. Not tried: `sriov`, which needs a NIC that
has it, and `whereabouts` and `nv-ipam`, which need a cluster; a script gives addresses for them.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kubernetes.cni.node import PROGRAMS, Namespaces, Node
from tests.kubernetes.cni.runtime import Attachment, PluginError, versions_of
from tests.manifests.faces import attached
from tests.running.rendering.experiments import objects_of, rendered
from tests.running.rendering.networks import NETWORKS, with_files

from broadgauge.manifests.attachment_conflicts import refuse_conflicts
from broadgauge.manifests.attachments import NETWORKS as ANNOTATION
from broadgauge.manifests.attachments import networks_annotation
from broadgauge.manifests.cni import VERSION, VERSIONS, named, problems
from broadgauge.specs.errors import InputError
from broadgauge.specs.networks.attachment_rules import MODES

pytestmark = [
    pytest.mark.kubernetes,  # it builds the plugins
    pytest.mark.namespaces,
    pytest.mark.skipif(not all(map(shutil.which, PROGRAMS)), reason=f"needs {', '.join(PROGRAMS)}"),
]
PLUGINS = ("host-device", "macvlan", "ipvlan", "bridge", "tuning", "static")
NIC, NIC_MTU = "ens13", 9000
STATIC = {"kind": "static", "ranges": "10.0.1.0/24", "exclude": "10.0.1.1/32"}
UNKNOWN_TO_KERNEL = "operation not supported"


@pytest.fixture
def node() -> Iterator[Node]:
    """With one NIC."""
    with Node() as made:
        made.add_nic(NIC, mtu=NIC_MTU)
        yield made


@pytest.fixture(scope="module")
def has_ipvlan() -> bool:
    """Does this kernel know such interfaces? Else the plugin says so, which shows that it took the
    configuration, and no more is to be seen."""
    with Node() as made:
        return made.has_kind("ipvlan")


def attachments(
    node: Node, pod: Namespaces, *networks: dict[str, Any], num_pods: int = 1
) -> list[Attachment]:
    """As rendered, in the order in which Multus attaches them."""
    found, definitions = attached(*networks, num_pods=num_pods)
    entries = json.loads(networks_annotation(found.interfaces, None, 0)[ANNOTATION])
    return [
        Attachment(
            node=node,
            pod=pod,
            config=named(definitions.rendered[entry["name"]].config or {}, entry["name"]),
            name=entry["interface"],
            ips=entry.get("ips", []),
        )
        for entry in entries
    ]


def face(kind: str, mode: str | None = None, **more: Any) -> dict[str, Any]:
    said = {} if mode is None else {"mode": mode}
    return {"attachment": kind, "devices": NIC, "ipam": STATIC, **said, **more}


RDMA = {"transport": "efa", "resources": "a.io/b"}


def entry(network: dict[str, Any], name: str = "n") -> dict[str, Any]:
    return {"name": name, "kubernetes": network}


def mode_of(link: dict[str, Any]) -> str | None:
    mode: str | None = link["linkinfo"].get("info_data", {}).get("mode")
    return mode


def addresses_of(link: dict[str, Any]) -> list[str]:
    return [
        f"{each['local']}/{each['prefixlen']}"
        for each in link["addr_info"]
        if each["family"] == "inet"
    ]


@pytest.mark.parametrize("mtu", [None, 1400])
@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        ("host-device", None),
        *(("macvlan", mode) for mode in MODES["macvlan"]),
        *(("ipvlan", mode) for mode in MODES["ipvlan"]),
        ("bridge", None),
    ],
)
def test_pod_has_what_its_definition_says_until_it_goes(
    node: Node, has_ipvlan: bool, kind: str, mode: str | None, mtu: int | None
) -> None:
    """The second address of the range, since the first is left out."""
    said = face(kind, mode, mtu_bytes=mtu)
    if kind == "bridge":
        node.add_bridge("br0")
        said["devices"] = "br0"
    before, pod = node.links(), node.pod()
    (network,) = attachments(node, pod, entry(said))
    if kind == "ipvlan" and not has_ipvlan:
        with pytest.raises(PluginError, match=f"^failed to create ipvlan: {UNKNOWN_TO_KERNEL}$"):
            network.add()
        return
    network.add()
    link = pod.links()["net1"]
    kinds = {"host-device": "veth", "bridge": "veth"}
    assert link["linkinfo"]["info_kind"] == kinds.get(kind, kind)
    assert mode_of(link) == mode
    assert link["mtu"] == (mtu or (1500 if kind == "bridge" else NIC_MTU))
    assert addresses_of(link) == ["10.0.1.2/24"]
    assert "UP" in link["flags"]
    assert (NIC in node.links()) == (kind != "host-device")
    network.delete()
    assert pod.links() == {}
    after = node.links()
    assert after.keys() == before.keys()
    assert (after[NIC]["mtu"], addresses_of(after[NIC])) == (NIC_MTU, [])


def test_interface_without_an_address_is_up(node: Node) -> None:
    """As RDMA may go, and as an address map's init container finds it."""
    pod = node.pod()
    for kind in ("macvlan", "host-device"):
        (network,) = attachments(node, pod, entry(face(kind, ipam=None, **RDMA)))
        network.add()
        link = pod.links()["net1"]
        assert addresses_of(link) == []
        assert "UP" in link["flags"]
        network.delete()


MACVLAN, VEPA, PASSTHRU = (face("macvlan", mode) for mode in ("bridge", "vepa", "passthru"))
IPVLAN, LAYER_3, HOST, BRIDGE = (
    face("ipvlan"), face("ipvlan", "l3"), face("host-device"), face("bridge"))  # fmt: skip
BOTH, BOTH_IN_ONE_MODE = "both", "both, in the second one's mode"
BUSY, INVALID = "device or resource busy", "invalid argument"
GONE = "Link not found"


@pytest.mark.parametrize(
    ("one", "other", "forth", "back"),
    [
        pytest.param(MACVLAN, MACVLAN, BOTH, BOTH, id="macvlan"),
        pytest.param(MACVLAN, VEPA, BOTH, BOTH, id="macvlan and vepa"),
        pytest.param(MACVLAN, PASSTHRU, INVALID, INVALID, id="macvlan and passthru"),
        pytest.param(PASSTHRU, PASSTHRU, INVALID, INVALID, id="passthru"),
        pytest.param(MACVLAN, IPVLAN, BUSY, BUSY, id="macvlan and ipvlan"),
        pytest.param(IPVLAN, IPVLAN, BOTH, BOTH, id="ipvlan"),
        pytest.param(IPVLAN, LAYER_3, BOTH_IN_ONE_MODE, BOTH_IN_ONE_MODE, id="ipvlan and l3"),
        pytest.param(HOST, HOST, GONE, GONE, id="host-device"),
        pytest.param(HOST, MACVLAN, GONE, BOTH, id="host-device and macvlan"),
        pytest.param(HOST, IPVLAN, GONE, BOTH, id="host-device and ipvlan"),
        pytest.param(BRIDGE, BRIDGE, BOTH, BOTH, id="bridge"),
        pytest.param(BRIDGE, MACVLAN, BOTH, BOTH, id="bridge and macvlan"),
        pytest.param(BRIDGE, PASSTHRU, BOTH, BOTH, id="bridge and passthru"),
        pytest.param(BRIDGE, IPVLAN, BOTH, BOTH, id="bridge and ipvlan"),
        pytest.param(BRIDGE, HOST, INVALID, INVALID, id="bridge and host-device"),
    ],
)
def test_one_device_is_refused_to_two_networks_as_the_kernel_does_it(
    has_ipvlan: bool, one: dict[str, Any], other: dict[str, Any], forth: str, back: str
) -> None:
    """Or where it serves one network otherwise than asked, or serves both in one order only."""
    device = "br0" if BRIDGE in (one, other) else NIC
    ways = [entry({**one, "devices": device, "definitions": "d-a"}, "a"),
            entry({**other, "devices": device, "definitions": "d-b"}, "b")]  # fmt: skip
    ways[1]["kubernetes"]["ipam"] = STATIC | {"ranges": "10.0.2.0/24", "exclude": "10.0.2.1/32"}
    for order, expected in ((ways, forth), (ways[::-1], back)):
        happens = attach_both(order)
        if "ipvlan" in (one["attachment"], other["attachment"]) and not has_ipvlan:
            assert happens.endswith((UNKNOWN_TO_KERNEL, GONE))
        else:
            assert happens.endswith(expected)
        found, _ = attached(*order, num_pods=1)
        if (forth, back) == (BOTH, BOTH):
            refuse_conflicts(found, 1, (), is_each_told=True)
        else:
            with pytest.raises(InputError, match=f"two networks on one interface: `{device}`"):
                refuse_conflicts(found, 1, (), is_each_told=True)


def attach_both(networks: list[dict[str, Any]]) -> str:
    """What came of it, to a pod of a node of its own, from which both go afterwards."""
    with Node() as node:
        node.add_nic(NIC)
        node.add_bridge("br0")
        before, pod = node.links().keys(), node.pod()
        first, second = attachments(node, pod, *networks)
        try:
            first.add()
            second.add()
        except PluginError as refusal:
            return str(refusal)
        said = [network["kubernetes"] for network in networks]
        modes = [each.get("mode", MODES.get(each["attachment"], (None,))[0]) for each in said]
        found = [mode_of(pod.links()[name]) for name in ("net1", "net2")]
        second.delete()
        first.delete()
        assert (pod.links(), node.links().keys()) == ({}, before)
        if found == modes:
            return BOTH
        assert found == [modes[1]] * 2
        return BOTH_IN_ONE_MODE


def test_keys_that_no_plugin_has_are_ignored_and_a_missing_comma_is_not(node: Node) -> None:
    """Published samples have both; here both are refused."""
    pod = node.pod()
    (network,) = attachments(node, pod, entry(face("host-device", ipam=None, **RDMA)))
    right = network.config
    network.config = json.dumps({**json.loads(right), "isRdma": True})
    assert problems(json.loads(network.config)) == ["`host-device` has no key `isRdma`"]
    network.add()
    assert set(pod.links()) == {"net1"}
    network.delete()
    without_comma = right.replace('",', '"', 1)
    with pytest.raises(PluginError, match="invalid character '\"' after object key:value pair"):
        network.start_with("ADD", "host-device", without_comma)
    assert NIC in node.links()


@pytest.mark.parametrize("kind", ["macvlan", "ipvlan"])
def test_a_mode_of_the_other_kind_is_refused(node: Node, kind: str) -> None:
    (network,) = attachments(node, node.pod(), entry(face(kind)))
    other = "l2" if kind == "macvlan" else "vepa"
    network.config = json.dumps({**json.loads(network.config), "mode": other})
    assert problems(json.loads(network.config)) == [f"`{other}` is no mode of `{kind}`"]
    with pytest.raises(PluginError, match=f'unknown {kind} mode: "{other}"'):
        network.add()


def test_macvlan_has_no_larger_mtu_than_its_device(node: Node) -> None:
    """Which only the cluster shows: what MTU a device has is not in the experiment."""
    (network,) = attachments(node, node.pod(), entry(face("macvlan", mtu_bytes=NIC_MTU + 1)))
    with pytest.raises(PluginError, match=rf"invalid MTU 9001, must be \[0, master MTU\({NIC_MTU}"):
        network.add()


def test_all_plugins_know_our_versions_of_the_specification() -> None:
    for kind in PLUGINS:
        assert set(VERSIONS) <= set(versions_of(kind)), kind


@pytest.mark.parametrize("version", VERSIONS)
def test_what_was_made_is_as_the_plugins_check_it(node: Node, version: str) -> None:
    """Which came with 0.4.0 of the specification."""
    (network,) = attachments(node, node.pod(), entry(face("host-device", mtu_bytes=1400)))
    network.config = json.dumps({**json.loads(network.config), "cniVersion": version})
    assert network.add()["cniVersion"] == version
    if version <= VERSION:
        with pytest.raises(PluginError, match="config version does not allow CHECK"):
            network.check()
    else:
        network.check()
        network.pod.run("ip", "link", "set", "net1", "mtu", "1300")
        with pytest.raises(PluginError, match=r"MTU .* 1400"):
            network.check()
    network.delete()


IPAM = """\
#!/bin/sh
cat > "$0.$CNI_COMMAND.$CNI_IFNAME"
[ $CNI_COMMAND = DEL ] && exit
address=10.9.${CNI_IFNAME#net}.7/24
echo '{"cniVersion": "0.3.1", "ips": [{"version": "4", "address": "'$address'"}]}'
"""


def test_a_whole_experiment_is_attached_and_goes(tmp_path: Path, has_ipvlan: bool) -> None:
    """All that its pods' annotation lists and `render` defines, but for `sriov` and `ib-sriov`.
    What gives the addresses is told its own part as rendered."""
    expected = {
        "net1": "host-device", "net2": "host-device", "net3": "macvlan",
        **({"net6": "ipvlan"} if has_ipvlan else {}), "net7": "bridge"}  # fmt: skip
    (tmp_path / "whereabouts").write_text(IPAM)
    (tmp_path / "whereabouts").chmod(0o755)
    with Node() as node:
        for name in ("ens13", "ens14", "ens8f0np0", "ens2"):
            node.add_nic(name)
        node.add_bridge("br0")
        before, pod = node.links().keys(), node.pod()
        there = {}
        for name, config in definitions_of_pods(with_files(tmp_path)).items():
            kind = json.loads(config)["type"]
            if kind not in ("sriov", "ib-sriov") and (kind != "ipvlan" or has_ipvlan):
                there[name] = Attachment(node=node, pod=pod, config=config, name=name,
                                         more_plugins=tmp_path)  # fmt: skip
                there[name].add()
        assert {name: each.plugins()[0]["type"] for name, each in there.items()} == expected
        links = pod.links()
        assert links.keys() == expected.keys()
        for name, network in there.items():
            ipam = json.loads(network.config).get("ipam")
            assert addresses_of(links[name]) == ([f"10.9.{name[3:]}.7/24"] if ipam else [])
            if ipam:
                told = json.loads((tmp_path / f"whereabouts.ADD.{name}").read_text())
                assert told["ipam"] == ipam
            network.delete()
        assert (pod.links(), node.links().keys()) == ({}, before)


def definitions_of_pods(folder: Path) -> dict[str, str]:
    """The rendered `config` of each interface of a pod, in the order of its annotation."""
    found = rendered(folder, text=NETWORKS)
    definitions = {
        each["metadata"]["name"]: each["spec"]["config"]
        for each in objects_of(found, "NetworkAttachmentDefinition")
    }
    template = objects_of(found, "Job")[-1]["spec"]["template"]
    entries = json.loads(template["metadata"]["annotations"][ANNOTATION])
    return {
        each["interface"]: definitions[each["name"]]
        for each in entries
        if each["name"] in definitions
    }
