"""Proves agent/pod/resolve.py: what NCCL is told in a pod, and what is refused."""

import ipaddress
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.agent.hardware.machines import NO_GID, Machine
from tests.agent.pod import pods
from tests.agent.pod.pods import VF, asked, facts_of, found, vfs, why

from broadgauge.agent.pod.facts import TOPOLOGY_FILE, PodFacts
from broadgauge.agent.pod.name_lists import is_named
from broadgauge.agent.pod.nccl_variables import SOCKETS_ONLY as SOCKETS_IN_POD
from broadgauge.agent.pod.network_words import describe, describe_pod, refused
from broadgauge.agent.pod.rdma_plugins import BY_PLUGIN
from broadgauge.agent.pod.resolve import BY_VERBS, resolve
from broadgauge.messages.asked_network import AskedNetwork, network_word, read_network_word
from broadgauge.messages.hardware import NicFacts
from broadgauge.platforms.paths import SOCKETS_ONLY
from broadgauge.specs.networks import transports


def beside(root: Path, annotations: str, **addresses: str) -> PodFacts:
    """With more interfaces, which may be in one subnet: no file says whose an address is."""
    facts = facts_of(root, annotations)
    nics = [
        NicFacts(
            name=name,
            kind="veth",
            state="up",
            speed_mbps=None,
            mtu_bytes=1500,
            driver=None,
            addresses=(address,),
            subnets=(str(ipaddress.ip_interface(address).network),),
        )
        for name, address in addresses.items()
    ]
    hardware = replace(facts.hardware, nics=(*facts.hardware.nics, *nics))
    return replace(facts, hardware=hardware)


def test_words_of_transports_are_those_of_experiments() -> None:
    assert BY_VERBS == transports.BY_VERBS
    assert set(BY_VERBS) | set(BY_PLUGIN) == set(transports.RDMA)
    assert SOCKETS_IN_POD == SOCKETS_ONLY


def test_pod_network_is_the_default_route(tmp_path: Path) -> None:
    pods.pod(tmp_path)
    resolved = found(tmp_path, asked(None))
    assert (resolved.interfaces, resolved.addresses) == (("eth0",), ("10.128.2.7",))
    assert resolved.variables == {"NCCL_SOCKET_IFNAME": "=eth0", "GLOO_SOCKET_IFNAME": "eth0"}
    assert resolved.problems == ()
    assert why(resolved, "NCCL_SOCKET_IFNAME") == "eth0: it has the pod's default route"


def test_pod_network_is_the_statuss_own_where_an_attachment_took_the_default_route(
    tmp_path: Path,
) -> None:
    machine = Machine(tmp_path)
    machine.base()
    machine.nic("eth0", is_pair=True, address="10.128.2.7/23")
    machine.nic("net1", is_pair=True, address="192.168.7.2/24", is_default=True)
    assert found(tmp_path, asked("tcp"), pods.status()).interfaces == ("eth0",)
    assert found(tmp_path, asked("tcp"), "").interfaces == ("net1",)


def test_no_network_at_all(tmp_path: Path) -> None:
    Machine(tmp_path).base()
    (problem,) = found(tmp_path, asked(None)).problems
    assert "no default route" in problem


def test_a_virtual_function_by_its_status(tmp_path: Path) -> None:
    pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    resolved = found(tmp_path, asked("roce", VF), vfs(1))
    assert resolved.problems == ()
    assert resolved.interfaces == ("net1",)
    assert resolved.adapters == ("mlx5_10:1",)
    assert resolved.variables == {
        "NCCL_SOCKET_IFNAME": "=net1",
        "GLOO_SOCKET_IFNAME": "net1",
        "NCCL_NET": "IB",
        "NCCL_IB_HCA": "=mlx5_10:1",
        "NCCL_IB_GID_INDEX": "3",
    }
    assert why(resolved, "NCCL_IB_HCA") == "net1 is mlx5_10:1, its GID table has 10.1.0.5"
    assert [(pair.adapter, pair.distance) for pair in resolved.pairs] == [("mlx5_10:1", "PIX")]


def test_tcp_twin_of_the_same_interface(tmp_path: Path) -> None:
    pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    resolved = found(tmp_path, asked("sriov-tcp", VF), vfs(1))
    assert resolved.variables == {
        "NCCL_SOCKET_IFNAME": "=net1",
        "GLOO_SOCKET_IFNAME": "net1",
        **SOCKETS_ONLY,
    }
    assert resolved.adapters == ()
    assert "whatever else the pod has" in why(resolved, "NCCL_IB_DISABLE")


def test_several_nics_in_the_attachments_order(tmp_path: Path) -> None:
    pods.vf_pod(tmp_path, ["10.1.0.5/24", "10.2.0.5/24", "10.3.0.5/24"], gpus=2)
    wanted = asked("roce", "default/sriov-3", "default/sriov-1")
    resolved = found(tmp_path, wanted, vfs(1, 2, 3))
    assert resolved.interfaces == ("net3", "net1")
    assert resolved.addresses == ("10.3.0.5", "10.1.0.5")
    assert resolved.variables["NCCL_IB_HCA"] == "=mlx5_12:1,mlx5_10:1"
    assert resolved.variables["NCCL_CROSS_NIC"] == "0"
    assert why(resolved, "NCCL_CROSS_NIC").startswith(
        "2 subnets and no gateway between in the main routing table"
    )
    pairs = {pair.gpu: (pair.adapter, pair.distance) for pair in resolved.pairs}
    assert pairs["0000:13:00.0"] == ("mlx5_10:1", "PIX")


def test_fewer_nics_than_attachments(tmp_path: Path) -> None:
    pods.vf_pod(tmp_path, ["10.1.0.5/24", "10.2.0.5/24"])
    assert found(tmp_path, asked(None, VF), vfs(1, 2)).interfaces == ("net1",)


def test_one_attachment_asked_for_twice(tmp_path: Path) -> None:
    pods.pod(tmp_path)
    annotations = pods.status(pods.entry(1, VF), pods.entry(2, VF))
    facts = beside(tmp_path, annotations, net1="10.1.0.5/24", net2="10.1.0.6/24")
    resolved = resolve(asked("tcp", VF, VF), facts)
    assert resolved.interfaces == ("net1", "net2")
    (note,) = resolved.notes
    assert "net1, net2 are in one subnet, 10.1.0.0/24" in note


def test_of_an_attachments_interfaces_the_one_that_was_asked_for(tmp_path: Path) -> None:
    """A plugin may make several of one definition: Multus writes an entry for each."""
    pods.pod(tmp_path)
    own = [pods.entry(n, VF) for n in (3, 2, 1)]
    facts = beside(tmp_path, pods.status(*own), net1="10.1.0.5/24", net2="10.2.0.5/24",
                   net3="10.3.0.5/24")  # fmt: skip
    assert resolve(asked("tcp", VF), facts).interfaces == ("net1",)
    (second,) = asked("tcp", VF).attachments
    moved = replace(second, interface="eth9")
    both = replace(asked("tcp", VF), attachments=(moved, replace(second, interface="net3")))
    assert resolve(both, facts).interfaces == ("net2", "net3")


def test_an_odd_entry_of_the_status_is_said_only_where_one_is_missing(tmp_path: Path) -> None:
    pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    odd = {"name": "x/y", "interface": "a/b"}
    annotations = pods.status(odd, pods.entry(1, VF, "10.1.0.5"))
    resolved = found(tmp_path, asked("tcp", VF), annotations)
    assert (resolved.interfaces, resolved.problems, resolved.notes) == (("net1",), (), ())
    (problem,) = found(tmp_path, asked("tcp", "x/y"), annotations).problems
    assert problem.endswith(
        "status: ovn-kubernetes, default/sriov-1; not readable: network status, entry 1: interface "
        "can't be 'a/b'"
    )


def test_by_subnet_where_no_status_is_there(tmp_path: Path) -> None:
    pods.vf_pod(tmp_path, ["10.1.0.5/24", "10.2.0.5/24"])
    wanted = asked("tcp", VF, "default/sriov-2", subnets=("10.2.0.0/24", "10.1.0.0/16"))
    resolved = found(tmp_path, wanted, "")
    assert resolved.interfaces == ("net2", "net1")
    assert why(resolved, "NCCL_SOCKET_IFNAME").startswith("net2: its address is in 10.2.0.0/24")


def test_several_nics_of_one_subnet(tmp_path: Path) -> None:
    pods.pod(tmp_path)
    facts = beside(tmp_path, "", net10="10.9.0.10/24", net2="10.9.0.2/24")
    two = asked("tcp", "a/b", "a/b", subnets=("10.9.0.0/24", "10.9.0.0/24"))
    assert resolve(two, facts).problems == ()
    assert resolve(two, facts).interfaces == ("net2", "net10")
    alone = asked("tcp", "a/b", subnets=("10.9.0.0/24",))
    (problem,) = resolve(alone, facts).problems
    assert problem == (
        "1 is asked for of the interfaces with an address in 10.9.0.0/24, here: net2, net10"
    )


@pytest.mark.parametrize(
    ("network", "annotations", "says"),
    [
        (asked("tcp", VF), "", "no network status annotation"),
        (asked("tcp", VF), 'k8s.v1.cni.cncf.io/network-status="{}"\n', "is no list"),
        (
            asked("tcp", "default/other"),
            vfs(1),
            "default/other is not among the networks of",
        ),
        (asked("tcp", "x/sriov-1"), vfs(1), "x/sriov-1 is not among"),
        (asked("tcp", "default/sriov-9"), vfs(9), "names net9, which is not in this pod"),
        (asked("tcp", VF, subnets=("nonsense",)), "", "no subnet"),
        (asked("tcp", VF, subnets=("10.77.0.0/16",)), "", "here: none"),
    ],
)
def test_what_is_not_found_is_said_and_refused(
    tmp_path: Path, network: AskedNetwork, annotations: str, says: str
) -> None:
    pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    resolved = found(tmp_path, network, annotations)
    assert any(says in problem for problem in resolved.problems)
    assert resolved.variables == {}


def test_an_interface_without_an_address_is_refused(tmp_path: Path) -> None:
    machine = pods.pod(tmp_path)
    machine.nic("net1", is_pair=True)
    annotations = pods.status(pods.entry(1, VF))
    (problem,) = found(tmp_path, asked("tcp", VF), annotations).problems
    assert problem == "no address on net1"


def test_an_attachment_of_the_pods_own_namespace(tmp_path: Path) -> None:
    pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    assert found(tmp_path, asked("tcp", "sriov-1"), vfs(1)).interfaces == ("net1",)


def test_an_older_status_has_no_namespace(tmp_path: Path) -> None:
    pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    annotations = pods.status(pods.entry(1, "sriov-1", "10.1.0.5"))
    assert found(tmp_path, asked("tcp", VF), annotations).interfaces == ("net1",)


def test_lines_for_people(tmp_path: Path) -> None:
    pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    facts = facts_of(tmp_path, vfs(1), NCCL_DEBUG="INFO")
    lines = list(describe(resolve(asked("roce", VF), facts), facts))
    assert lines[0] == "network fabric: net1 10.1.0.5; RDMA by mlx5_10:1"
    assert "  NCCL_IB_HCA==mlx5_10:1 (net1 is mlx5_10:1, its GID table has 10.1.0.5)" in lines
    assert "  NCCL_TOPO_FILE is left unset: NCCL reads the PCI bus itself" in lines
    assert "  GPU 0000:13:00.0 to mlx5_10:1: PIX" in lines
    assert "  as the manifest or the image has them: NCCL_DEBUG" in lines
    (no,) = refused(resolve(asked("efa"), facts))
    assert no == (
        "refused: network fabric: `efa` is asked for, and no adapter has the driver efa; "
        "adapters here: mlx5_10:1 Ethernet ACTIVE"
    )
    assert list(describe_pod(facts)) == [
        "interface eth0: veth, up, 10.128.2.7/23, default route",
        "interface net1: vf, up, 10.1.0.5/24",
        "adapter mlx5_10:1: Ethernet, ACTIVE, /dev/infiniband/uverbs0; RoCE v2 GIDs 3 10.1.0.5",
        "attachment ovn-kubernetes: eth0 10.128.2.7, the pod's own",
        "attachment default/sriov-1: net1 10.1.0.5",
    ]


def test_what_the_user_set_is_kept_each_variable_by_itself(tmp_path: Path) -> None:
    pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    resolved = found(
        tmp_path, asked("roce", VF), vfs(1), NCCL_SOCKET_IFNAME="eth0", NCCL_IB_GID_INDEX="1"
    )
    assert resolved.problems == ()
    assert resolved.variables == {
        "GLOO_SOCKET_IFNAME": "net1",
        "NCCL_NET": "IB",
        "NCCL_IB_HCA": "=mlx5_10:1",
    }
    kept = "set by the experiment or the image, and kept; found here: "
    assert why(resolved, "NCCL_SOCKET_IFNAME") == f"{kept}=net1"
    assert why(resolved, "NCCL_IB_GID_INDEX") == f"{kept}3"
    sockets = found(tmp_path, asked("roce", VF), vfs(1), NCCL_IB_DISABLE="1", NCCL_NET="IB")
    assert sockets.notes == ("NCCL_IB_DISABLE=1 is kept, though `roce` is asked for",)


def test_what_a_file_of_nccls_says_gives_way_and_is_said(tmp_path: Path) -> None:
    machine = pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    machine.file("/etc/nccl.conf", "NCCL_IB_HCA=mlx5_0\n")
    resolved = found(tmp_path, asked("roce", VF), vfs(1))
    assert resolved.variables["NCCL_IB_HCA"] == "=mlx5_10:1"
    assert why(resolved, "NCCL_IB_HCA").endswith("; in the place of /etc/nccl.conf:1's mlx5_0")


def test_adapters_that_the_user_names_are_those_that_are_held_against_what_is_asked(
    tmp_path: Path,
) -> None:
    pods.vf_pod(tmp_path, ["10.1.0.5/24", "10.2.0.5/24"])
    one = found(tmp_path, asked("roce", VF), vfs(1, 2), NCCL_IB_HCA="=mlx5_11:1")
    assert (one.adapters, one.problems) == (("mlx5_11:1",), ())
    assert "NCCL_IB_HCA" not in one.variables
    (problem,) = found(tmp_path, asked("roce", VF), vfs(1, 2), NCCL_IB_HCA="mlx5_3").problems
    assert problem.startswith("NCCL_IB_HCA=mlx5_3 names no adapter of this pod; adapters here: ml")


def down(root: Path) -> None:
    (root / "sys/class/infiniband/mlx5_11/ports/1/state").write_text("1: DOWN\n")


def closed(root: Path) -> None:
    (root / "dev/infiniband/uverbs1").unlink()


def without_gid(root: Path) -> None:
    for index in (2, 3):
        (root / f"sys/class/infiniband/mlx5_11/ports/1/gids/{index}").write_text(f"{NO_GID}\n")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (down, "NCCL passes over: mlx5_11:1 is DOWN"),
        (closed, "NCCL passes over: mlx5_11: /dev/infiniband/uverbs1 is not in this container"),
        (without_gid, "NCCL may try: mlx5_11:1 has no GID of RoCE v2"),
    ],
)
@pytest.mark.parametrize("value", ["mlx5", "^mlx5_bond_0", "mlx5_10,mlx5_11:1"])
def test_ports_that_nccl_goes_on_without_are_no_reason_to_refuse(
    tmp_path: Path, value: str, change: Callable[[Path], None], says: str
) -> None:
    """Where the user's list has beginnings of names, or those to leave out; `=` means all of it."""
    pods.vf_pod(tmp_path, ["10.1.0.5/24", "10.2.0.5/24"])
    change(tmp_path)
    wanted = asked("roce", VF)
    resolved = found(tmp_path, wanted, vfs(1, 2), NCCL_IB_HCA=value)
    assert (resolved.adapters, resolved.problems) == (("mlx5_10:1",), ())
    assert resolved.variables["NCCL_IB_GID_INDEX"] == "3"
    (note,) = resolved.notes
    assert note.startswith(f"NCCL_IB_HCA={value} names more, which {says}")
    exact = found(tmp_path, wanted, vfs(1, 2), NCCL_IB_HCA="=mlx5_10,mlx5_11")
    assert len(exact.problems) == 1
    alone = found(tmp_path, wanted, vfs(1, 2), NCCL_IB_HCA="mlx5_11")
    assert alone.problems == exact.problems


@pytest.mark.parametrize(
    ("value", "name", "port", "expected"),
    [
        ("mlx5_1", "mlx5_10", 1, True),
        ("=mlx5_1", "mlx5_10", 1, False),
        ("=mlx5_1:2", "mlx5_1", 1, False),
        ("=mlx5_0,mlx5_1:1", "mlx5_1", 1, True),
        ("^mlx5_1", "mlx5_10", 1, False),
        ("^=mlx5_1", "mlx5_10", 1, True),
        ("eth", "eth0", None, True),
        ("=net1:0", "net1:0", None, True),
    ],
)
def test_lists_of_names_are_read_as_nccl_reads_them(
    value: str, name: str, port: "int | None", expected: bool
) -> None:
    assert is_named(value, name, port) is expected


@pytest.mark.parametrize(("name", "interfaces"), [("net1", ("net1",)), ("lo", ())])
def test_an_interface_that_the_user_names_needs_no_status(
    tmp_path: Path, name: str, interfaces: tuple[str, ...]
) -> None:
    pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    wanted = asked("tcp", VF)
    given = {"NCCL_SOCKET_IFNAME": f"={name}", "GLOO_SOCKET_IFNAME": name}
    resolved = found(tmp_path, wanted, "", **given)
    assert (resolved.interfaces, resolved.problems) == (interfaces, ())
    assert resolved.variables == SOCKETS_ONLY
    for each in given:
        alone = found(tmp_path, wanted, "", **{each: name})
        assert alone.problems[0].startswith("the pod has no network status annotation")
    rdma = found(tmp_path, asked("roce", VF), "", **given)
    assert bool(rdma.problems) is (name == "lo")


@pytest.mark.parametrize("name", ["eth7", "enp223s0", "ib.100", "x@%!"])
def test_interfaces_may_have_any_name(tmp_path: Path, name: str) -> None:
    """Some plugins do not take the one that they are asked for."""
    machine = pods.pod(tmp_path)
    machine.nic(name, is_pair=True, address="10.1.0.5/24")
    annotations = pods.status(pods.entry(1, VF, "10.1.0.5") | {"interface": name})
    for told in (found(tmp_path, asked("tcp", VF), annotations),
                 found(tmp_path, asked("tcp", VF, subnets=("10.1.0.0/24",)))):  # fmt: skip
        assert (told.interfaces, told.problems) == ((name,), ())


def test_gke_promises_the_names(tmp_path: Path) -> None:
    machine = pods.pod(tmp_path)
    machine.nic("eth1", is_pair=True, address="10.1.0.5/24")
    (one,) = asked("tcp", "vpc-1").attachments
    wanted = replace(
        asked("tcp", "vpc-1"),
        attachments=(replace(one, interface="eth1", is_name_sure=True),),
    )
    assert found(tmp_path, wanted).interfaces == ("eth1",)


def test_gloo_is_told_its_interface_alone(tmp_path: Path) -> None:
    pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    resolved = found(tmp_path, asked("roce", VF, libraries=("gloo",)), vfs(1))
    assert resolved.variables == {"GLOO_SOCKET_IFNAME": "net1"}
    assert resolved.adapters == ()


@pytest.mark.parametrize(
    ("numa", "file", "says"),
    [
        (0, False, "NCCL reads the PCI bus itself"),
        (-1, False, "no file of the virtual machine's PCI topology is here, and the bus says noth"),
        (-1, True, f"NCCL reads {TOPOLOGY_FILE} by itself"),
    ],
)
def test_where_nccl_knows_the_topology_from(
    tmp_path: Path, numa: int, file: bool, says: str
) -> None:
    """As in a virtual machine, whose devices hang below root buses of their own."""
    machine = pods.pod(tmp_path, gpus=0, numa="0-1")
    machine.gpu(("pci0000:a0", "0000:a0:01.0"), 0, numa=numa)
    pods.add_vf(machine, 1, "10.1.0.5/24", hca="mlx5_0")
    if file:
        machine.file(TOPOLOGY_FILE, "<system/>")
    resolved = found(tmp_path, asked("roce", VF), vfs(1))
    assert why(resolved, "NCCL_TOPO_FILE").startswith(says)
    assert resolved.pairs[0].distance == ("NODE" if numa == 0 else "unknown")
    kept = found(tmp_path, asked("roce", VF), vfs(1), NCCL_TOPO_FILE="/mine.xml")
    assert why(kept, "NCCL_TOPO_FILE") == "set by the experiment or the image, and kept"


def test_names_of_others_stay_within_their_line(tmp_path: Path) -> None:
    machine = pods.pod(tmp_path)
    machine.nic("a\x1b[2J", is_pair=True)
    facts = facts_of(tmp_path, NCCL_IB_HCA="x\nbroadgauge: fine")
    resolved = resolve(replace(asked("roce"), name="n\u2028"), facts)
    lines = [*describe_pod(facts), *describe(resolved, facts), *refused(resolved)]
    assert all(line.isprintable() for line in lines)
    assert any("a\\x1b[2J" in line for line in lines)
    assert any("x\\nbroadgauge: fine names no adapter" in line for line in lines)


ROCEE = '{"name": "r", "transport": "rocee"}'
"""Manifests are read and changed by people: a slip must not become sockets."""


def test_a_network_is_one_word_of_a_command() -> None:
    network = asked("roce", VF, subnets=("10.1.0.0/24",), gpudirect=True)
    assert read_network_word(network_word(network)) == network
    for word in ("", "[]", "{}", '{"name": 1}', "[" * 100_000, ROCEE):
        with pytest.raises(ValueError, match="no JSON of a network"):
            read_network_word(word)
